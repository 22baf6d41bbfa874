"""The parts of a check: each yields rows {what, result, seconds, detail}, result one of passed, FAILED, skipped."""
import dataclasses
import json
import pathlib
import shutil
import subprocess
import time

import artifacts


@dataclasses.dataclass
class Context:
    made: artifacts.Artifacts
    work: pathlib.Path
    devices: int
    ftexec: pathlib.Path
    steps: int  # of a run against the CPU
    text: pathlib.Path
    deadline: float

    def left(self):
        return self.deadline - time.monotonic()


class Failed(Exception):
    pass


def row(what, begin, result, detail=""):
    return {"what": what, "result": result, "seconds": time.monotonic() - begin, "detail": detail}


def attempt(context, what, action):
    """The row of one action, which returns what to say or raises Failed."""
    begin = time.monotonic()
    if context.left() < 5:
        return row(what, begin, "skipped", "no time left")
    try:
        return row(what, begin, "passed", action())
    except Failed as error:
        return row(what, begin, "FAILED", str(error))
    except subprocess.TimeoutExpired as error:
        return row(what, begin, "FAILED", f"took longer than {error.timeout:.0f} s")


def execute(context, command, **kwargs):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace",
                          timeout=max(10, context.left()), **kwargs)
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise Failed(f"status {done.returncode}: {lines[-1] if lines else 'nothing said'}")
    return done.stdout


def train(context, plan, device, *options, world=1):
    """Metrics of all steps."""
    out = context.work / "metrics.jsonl"
    out.unlink(missing_ok=True)
    launcher = [] if world == 1 else [context.made.program("ftrun"), f"--nproc-per-node={world}", "--standalone"]
    execute(context, [*launcher, context.ftexec, context.made.plan(plan), f"--data={context.text}", f"--steps={context.steps}",
                      f"--device={device}", f"--metrics={out}", "--progress=off", *options])
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    if len(rows) != context.steps:
        raise Failed(f"{len(rows)} steps in the metrics, expected {context.steps}")
    return rows


def numbers(rows):
    return [(r["loss"], r["grad_norm"]) for r in rows]


def worst(rows, others):
    """Largest relative difference of losses."""
    return max(abs(a["loss"] - b["loss"]) / abs(b["loss"]) for a, b in zip(rows, others))


def conformance(context):
    def run():
        report = context.work / "conformance.json"
        execute(context, [context.made.program("ft_gpu_conformance_test"), f"--gtest_output=json:{report}"])
        tests = json.loads(report.read_text())
        skipped = sum(t.get("result") == "SKIPPED" for s in tests["testsuites"] for t in s["testsuite"])
        if skipped:
            raise Failed(f"{skipped} of {tests['tests']} were skipped: the test sees no device")
        return f"{tests['tests']} tests"
    yield attempt(context, "every kernel against the float64 reference", run)


def presets(context):
    """Against the CPU. In fp32 the two differ by the order of sums; a difference of 1e-4 after 20 steps is far above that and
    far below any mistake. In bf16 they also round at other places: a GPU may be twice as far from fp32 as the CPU is."""
    for preset in artifacts.PRESETS:
        def fp32():
            plan = f"{preset}-fp32-full_shard"
            difference = worst(train(context, plan, "cuda"), train(context, plan, "cpu"))
            if not difference <= 1e-4:
                raise Failed(f"losses differ by up to {difference:.2e} of their value, at most 1e-4 is allowed")
            return f"losses within {difference:.1e}"

        def bf16():
            plan = f"{preset}-bf16-full_shard"
            exact = train(context, f"{preset}-fp32-full_shard", "cpu")
            allowed = 2 * worst(train(context, plan, "cpu"), exact)
            difference = worst(train(context, plan, "cuda"), exact)
            if not difference <= allowed:
                raise Failed(f"losses differ from fp32 by up to {difference:.2e} of their value, {allowed:.2e} is allowed")
            return f"losses within {difference:.1e} of fp32 ({allowed:.1e} allowed)"
        yield attempt(context, f"{preset} fp32 against the CPU, {context.steps} steps", fp32)
        yield attempt(context, f"{preset} bf16 against the CPU, {context.steps} steps", bf16)


def strategies(context):
    """The same bits whatever the strategy, graphs or not."""
    flags = ("--deterministic=on",)
    for world in sorted({1, context.devices}):
        for precision in artifacts.PRECISIONS:
            reference = {}
            for strategy in artifacts.STRATEGIES:
                def run():
                    rows = numbers(train(context, f"gpt2-{precision}-{strategy}", "cuda", *flags, world=world))
                    if rows != reference.setdefault("rows", rows):
                        raise Failed("losses or gradient norms are not those of no_shard")
                    return "the bits of no_shard" if strategy != "no_shard" else "reference"
                yield attempt(context, f"{strategy} {precision}, {world} rank(s)", run)
    def eager():
        plan = "gpt2-bf16-full_shard"
        if numbers(train(context, plan, "cuda", *flags)) != numbers(train(context, plan, "cuda", *flags, "--cuda-graph=off")):
            raise Failed("--cuda-graph=off gives other bits")
        return "same bits with and without CUDA graph"
    yield attempt(context, "CUDA graph", eager)


def memory(context):
    """What was announced is what is allocated."""
    for preset in artifacts.PRESETS:
        def run():
            plan = f"{preset}-bf16-full_shard"
            announced = context.made.explained[plan]["arena_bytes"]
            used = train(context, plan, "cuda")[0]["arena_bytes"]
            if used != announced:
                raise Failed(f"arena of {used} bytes, {announced} were announced")
            return f"{used:,} bytes announced and used"
        yield attempt(context, f"arena of {preset}", run)


def sanitizer(context):
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        yield row("compute-sanitizer", time.monotonic(), "skipped", "it is not on PATH")
        return
    def run():
        execute(context, [tool, "--tool=memcheck", "--error-exitcode=1", "--leak-check=no",
                          context.made.program("ft_gpu_conformance_test")])
        return "no error"
    yield attempt(context, "memcheck over the conformance run", run)


PARTS = {"conformance": conformance, "presets": presets, "strategies": strategies, "memory": memory, "sanitizer": sanitizer}
