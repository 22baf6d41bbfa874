"""What is proved before anything is timed: generators of rows (runner.py). They run side by side."""
import concurrent.futures
import json
import os
import re
import shutil
import time

import artifacts
import runner
from runner import Failed, Skipped, attempt, execute

SANITIZER_SHARDS = 4
ALONE_AT_A_TIME = 4


def train(context, plan, device, *options, world=1, steps=None, env=None):
    """Metrics of all steps."""
    out, steps = context.file(".jsonl"), steps or context.steps
    launcher = [] if world == 1 else [context.made.program("ftrun"), f"--nproc-per-node={world}", "--standalone"]
    ftexec = context.ftexec if device == "cuda" else context.made.program("ftexec")
    execute(context, [*launcher, ftexec, context.made.plan(plan), f"--data={context.text}", f"--steps={steps}",
                      f"--device={device}", f"--metrics={out}", "--progress=off", *options], env=env)
    rows = runner.read_json_lines(out)
    if len(rows) != steps:
        raise Failed(f"{len(rows)} steps in the metrics, expected {steps}")
    return rows


def numbers(rows):
    return [(r["loss"], r["grad_norm"]) for r in rows]


def worst(rows, others):
    """Largest relative difference of losses; infinite where one is not a number."""
    pairs = [(a["loss"], b["loss"]) for a, b in zip(rows, others)]
    if any(not isinstance(value, (int, float)) for pair in pairs for value in pair):
        return float("inf")
    return max(abs(a - b) / abs(b) for a, b in pairs)


def check_fp32(rows, others):
    """Two devices differ by the order of sums in fp32; 1e-4 after 20 steps is far above that, and far below any mistake."""
    difference = worst(rows, others)
    if not difference <= 1e-4:
        raise Failed(f"losses differ by up to {difference:.2e} of their value, at most 1e-4 is allowed")
    return f"losses within {difference:.1e}"


def opening(context):
    """One step, and all that ftexec says of device and libraries. Where this fails, everything else would."""
    def run():
        plan = context.made.plan("gpt2-bf16-no_shard")
        return execute(context, [context.ftexec, plan, f"--data={context.text}", "--steps=1", "--device=cuda", "--progress=off"])
    made = attempt(context, "ftexec opens the GPU and makes a step", run)
    if made["result"] == "passed":
        made["output"], made["detail"] = made["detail"], ""
    return made


# Conformance


def conformance_tests(program, context):
    """Names of all tests of a GoogleTest program."""
    names, suite = [], ""
    for line in execute(context, [program, "--gtest_list_tests"]).splitlines():
        if re.match(r"\S+\.$", line):
            suite = line
        elif line.startswith("  "):
            names.append(suite + line.split("#")[0].strip())
    return names


def results_of(report):
    """Result of each test ("passed", "skipped", or what failed) that the report has."""
    found = {}
    for suite in json.loads(report.read_text() or "{}").get("testsuites", []):
        for test in suite["testsuite"]:
            failures = [failure["failure"] for failure in test.get("failures", [])]
            result = "skipped" if test.get("result") == "SKIPPED" else "passed"
            found[f"{suite['name']}.{test['name']}"] = "\n".join(failures) or result
    return found


def run_conformance(context, *options, launcher=(), limit=180.0, env=None):
    """Results by name, and what the program printed, or the Failed that it ended with."""
    report = context.file(".json")
    command = [*launcher, context.made.program("ft_gpu_conformance_test"), f"--gtest_output=json:{report}", *options]
    try:
        said = execute(context, command, limit=limit, env=env)
    except Failed as error:
        said = error
    return results_of(report), said


def conformance(context):
    """All in one process; those that failed or that a crash left out each once more in their own: an error of one may spoil
    the device for all that follow."""
    suspects = []

    def run():
        results, said = run_conformance(context)
        skipped = sum(result == "skipped" for result in results.values())
        if skipped:
            raise Failed(f"{skipped} of {len(results)} were skipped: the test sees no device")
        if not isinstance(said, Failed):
            return f"{len(results)} tests"
        names = conformance_tests(context.made.program("ft_gpu_conformance_test"), context)
        suspects.extend(name for name in names if results.get(name) != "passed")
        raise Failed(f"{len(suspects)} of {len(names)} failed or did not run ({said})", said.output)
    yield attempt(context, "every kernel against the float64 reference", run)

    def alone(name):
        def run():
            results, said = run_conformance(context, f"--gtest_filter={name}", limit=60)
            if isinstance(said, Failed):
                lines = [line for line in results.get(name, str(said)).splitlines() if line.strip()]
                raise Failed(" ".join(lines[:4])[:300], said.output)
            return "passes when alone"
        return attempt(context, f"alone: {name.rpartition('/')[2]} {name.rpartition('.')[2].split('/')[0]}", run)
    with concurrent.futures.ThreadPoolExecutor(ALONE_AT_A_TIME) as pool:
        yield from pool.map(alone, suspects)


def sanitizer(context):
    """The conformance tests in several shares side by side: under the tool each takes many times as long."""
    tool = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    if tool is None:
        yield runner.row("compute-sanitizer", time.monotonic(), "skipped", "it is neither on PATH nor in /usr/local/cuda/bin")
        return
    # Errors of CUDA's calls that libraries provoke and handle are none of ours: ours are all checked.
    launcher = [tool, "--tool=memcheck", "--report-api-errors=no", "--error-exitcode=99", "--print-limit=20"]

    def share(number):
        def run():
            env = {**context.environment, "GTEST_TOTAL_SHARDS": str(SANITIZER_SHARDS), "GTEST_SHARD_INDEX": str(number)}
            results, said = run_conformance(context, launcher=launcher, env=env, limit=600)
            text = said.output if isinstance(said, Failed) else said
            if any(result == "skipped" for result in results.values()) or "Device not supported" in text:
                raise Skipped("the device cannot be opened under it on this machine")
            if isinstance(said, Failed):
                found = [line for line in text.splitlines() if "Invalid" in line or "ERROR SUMMARY" in line]
                raise Failed(found[0].strip("= ") if found else str(said), text)
            return f"{len(results)} tests, no error"
        return attempt(context, f"memcheck over the conformance run, share {number + 1} of {SANITIZER_SHARDS}", run)
    with concurrent.futures.ThreadPoolExecutor(SANITIZER_SHARDS) as pool:
        yield from pool.map(share, range(SANITIZER_SHARDS))


# Training


def presets(context):
    """Against the CPU. In bf16 the two also round at other places: a GPU may be twice as far from fp32 as the CPU is."""
    threads = f"--threads={max(1, (os.cpu_count() or 2) // 2)}"

    def on_cpu(plan):
        return train(context, plan, "cpu", threads)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        cpu = {(preset, precision): pool.submit(on_cpu, f"{preset}-{precision}-full_shard")
               for preset in artifacts.PRESETS for precision in artifacts.PRECISIONS}
        for preset in artifacts.PRESETS:
            def fp32():
                return check_fp32(train(context, f"{preset}-fp32-full_shard", "cuda"), cpu[preset, "fp32"].result())

            def bf16():
                rows, exact = train(context, f"{preset}-bf16-full_shard", "cuda"), cpu[preset, "fp32"].result()
                allowed, difference = 2 * worst(cpu[preset, "bf16"].result(), exact), worst(rows, exact)
                if not difference <= allowed:
                    raise Failed(f"losses differ from fp32 by up to {difference:.2e} of their value, {allowed:.2e} is allowed")
                return f"losses within {difference:.1e} of fp32 ({allowed:.1e} allowed)"
            yield attempt(context, f"{preset} fp32 against the CPU, {context.steps} steps", fp32)
            yield attempt(context, f"{preset} bf16 against the CPU, {context.steps} steps", bf16)


def strategies_on(context, world, env=None):
    """The same bits whatever the strategy. With two axes of more than one rank, hybrid strategies also round between their two
    sums in bf16: then they agree with each other. Two axes where the tree of one sum is that of two, with a power of two."""
    mesh = (f"--mesh=replica:2,shard:{world // 2}",) if world > 1 and world & (world - 1) == 0 else ()
    for precision in artifacts.PRECISIONS:
        references = {}
        for strategy in artifacts.STRATEGIES:
            hybrid = strategy.startswith("hybrid")
            group = "hybrid_shard" if hybrid and precision == "bf16" and world > 2 and mesh else "no_shard"

            def run():
                options = ("--deterministic=on", *(mesh if hybrid else ()))
                rows = numbers(train(context, f"gpt2-{precision}-{strategy}", "cuda", *options, world=world, env=env))
                if rows != references.setdefault(group, rows):
                    raise Failed(f"losses or gradient norms are not those of {group}")
                return "reference" if strategy == group else f"the bits of {group}"
            yield attempt(context, f"{strategy} {precision}, {world} rank(s)", run)


def strategies(context):
    """On one GPU, with and without CUDA graph."""
    yield from strategies_on(context, 1)

    def enqueued():
        plan = "gpt2-bf16-full_shard"
        runs = [numbers(train(context, plan, "cuda", "--deterministic=on", *graph)) for graph in ((), ("--cuda-graph=off",))]
        if runs[0] != runs[1]:
            raise Failed("--cuda-graph=off gives other bits")
        return "same bits with and without"
    yield attempt(context, "CUDA graph", enqueued)


def ranks(context):
    """On all GPUs, or two ranks on the only one, which NCCL 2.30 can."""
    world, env = context.devices, context.environment
    if world == 1:
        world, env = 2, {**env, "NCCL_MULTI_RANK_GPU_ENABLE": "1"}

    def against_cpu():
        plan = "gpt2-fp32-no_shard"
        try:
            rows = train(context, plan, "cuda", world=world, env=env)
        except Failed as error:
            if context.devices == 1 and re.search(r"NCCL|duplicate|libnccl", str(error) + error.output):
                raise Skipped(f"two ranks cannot share the only GPU: {error}") from error
            raise
        return check_fp32(rows, train(context, plan, "cpu", world=world))
    first = attempt(context, f"{world} ranks on {context.devices} GPU(s) against the CPU", against_cpu)
    yield first
    if first["result"] != "skipped":
        yield from strategies_on(context, world, env)


def memory(context):
    """What was announced is what is allocated."""
    for preset in artifacts.PRESETS:
        def run():
            plan = f"{preset}-bf16-full_shard"
            announced, used = context.made.arena_bytes(plan), train(context, plan, "cuda", steps=1)[0]["arena_bytes"]
            if used != announced:
                raise Failed(f"arena of {used} bytes, {announced} were announced")
            return f"{used:,} bytes announced and used"
        yield attempt(context, f"arena of {preset}", run)


PARTS = {"conformance": conformance, "presets": presets, "strategies": strategies, "ranks": ranks, "memory": memory,
         "sanitizer": sanitizer}
