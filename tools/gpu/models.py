"""Training steps of real models on one GPU, each with a trace, beside the floors that stand here; and PyTorch's."""
import array
import json
import math
import random
import re
import statistics
import struct
import time
import zipfile

import artifacts
import gauges
import machine
import runner
from part import Part
from runner import Failed, attempt, execute

WARMUP = 4
TIMED_SECONDS = 5.0
# Tokens a second that are promised, by a word of the GPU's name.
FLOORS = {
    "H100": {"gpt2-124m": 460e3, "gpt2-1.5b": 47e3, "qwen2.5-1.5b": 59e3},
    "H200": {"gpt2-124m": 550e3, "gpt2-1.5b": 52e3, "qwen2.5-1.5b": 57e3},
}
FASTEST = 2.0  # no GPU is expected to need less time for a step than that of the H100's floor over this
SPEEDUP = 1.1  # over torch.compile, which is what we promise
BESIDE_ARENA = 2 << 30  # bytes for context and libraries
TRACED = 2  # steps, of the warm-up; the first waits for what libraries load
TRACES = "gpu-check-traces.zip"
LIMITS = {"ft": 90.0, "eager": 90.0, "blocks": 150.0, "compile": 200.0}  # seconds of one run
# "blocks" compiles in seconds what takes "compile" minutes with models so deep.
VARIANTS = ("blocks", "eager", "compile")
TORCH_STEPS = 12


def floor_of(name, gpu):
    """Tokens a second, or None."""
    return next((floors.get(name) for word, floors in FLOORS.items() if word in gpu["name"]), None)


def steps_for(context, name):
    """So many that those behind the warm-up last TIMED_SECONDS."""
    if context.emulated:
        return WARMUP + 2
    workload = artifacts.WORKLOADS[name]
    step = workload["batch"] * workload["seq"] / FLOORS["H100"][name] / FASTEST
    return WARMUP + math.ceil(TIMED_SECONDS / step)


def write_tokens(path, vocab=50257, count=1 << 20):
    """llm.c's format; Zipf-like, so that there is something to learn."""
    source = random.Random(1)
    tokens = array.array("H", (int(vocab * source.random() ** 3) for _ in range(count)))
    path.write_bytes(struct.pack("<256i", 20240520, 1, count, *([0] * 253)) + tokens.tobytes())


@runner.once
def tokens_in(folder):
    path = folder / "tokens.bin"
    write_tokens(path)
    return path


def data_of(context):
    return context.text if context.emulated else tokens_in(context.work)


def summary(seconds, tokens):
    """Of the steps after warm-up."""
    step = statistics.median(seconds)
    return {"tokens_per_s": tokens / step, "step_ms": step * 1e3, "steps_timed": len(seconds), "timed_s": sum(seconds)}


def run_plan(context, plan, steps, *options):
    """What a run measured, with clocks and power, and what it printed."""
    out = context.file(".jsonl")
    with gauges.watched(context.gpus[0]) as gauged:
        said = execute(context, [context.ftexec, context.made.plan(plan), "--device=cuda", f"--data={data_of(context)}",
                                 f"--steps={steps}", "--shuffle=off", "--lr=3e-4", f"--metrics={out}", "--progress=off",
                                 *context.options, *options], limit=LIMITS["ft"])
    rows = runner.read_json_lines(out)
    if len(rows) != steps:
        raise Failed(f"{len(rows)} steps in the metrics, expected {steps}", said)
    used = re.findall(r"device memory in use: (\d+) bytes", said)
    return {"seconds": [row["step_ms"] / 1e3 for row in rows[WARMUP:]], "loss": rows[-1]["loss"],
            **{key: rows[-1].get(key) for key in ("mfu", "exposed_ms", "arena_bytes")},
            "device_bytes": int(used[-1]) if used else None, "gauges": gauged}, said


def plan_that_fits(context, name):
    """(recomputation, plan) from the one that recomputes least; the last is tried though it is said not to fit."""
    for remat in artifacts.RECOMPUTATIONS:
        plan, last = artifacts.bench_plan(name, remat), remat == artifacts.RECOMPUTATIONS[-1]
        if last or context.made.arena_bytes(plan) + BESIDE_ARENA <= context.gpus[0]["bytes"]:
            yield remat, plan


def ours(context, name, *options):
    for remat, plan in plan_that_fits(context, name):
        try:
            measured, said = run_plan(context, plan, steps_for(context, name), *options)
            return {**measured, "announced_bytes": context.made.arena_bytes(plan), "keep": f"recomputation {remat}"}, said
        except Failed as error:
            # 74 is said of memory too: something else may use the GPU.
            if error.status != 74 or remat == artifacts.RECOMPUTATIONS[-1]:
                raise
    raise Failed(f"no plan of {name}")


def keep_trace(context, name, trace):
    """In an archive that comes back beside the figures."""
    if trace.exists() and trace.stat().st_size:
        with zipfile.ZipFile(context.results / TRACES, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.write(trace, f"{time.strftime('%H%M%S')}-{name}.json")


def told(name, measured):
    workload = {**artifacts.WORKLOADS, **artifacts.SMALL_WORKLOADS}[name]
    figures = summary(measured["seconds"], workload["batch"] * workload["seq"])
    beside = f"; {gauges.text(measured['gauges'])}" if "gauges" in measured else ""
    return f"{figures['tokens_per_s']:,.0f} tokens/s; {measured['keep']}{beside}"


def models(context):
    for name in artifacts.workloads(context):
        def run():
            trace = context.file(".trace.json")
            measured, said = ours(context, name, f"--trace={trace}", f"--trace-steps={TRACED}")
            keep_trace(context, name, trace)
            return told(name, measured), {"measured": measured, "output": said}
        yield attempt(context, f"{name}: ft", run)


def theirs(context, name, variant, steps=TORCH_STEPS):
    out, workload = context.file(".json"), artifacts.WORKLOADS[name]
    with gauges.watched(context.gpus[0]) as gauged:
        execute(context, [context.python, "-B", artifacts.HERE / "torch_worker.py", name, f"--variant={variant}",
                          f"--batch={workload['batch']}", f"--seq={workload['seq']}", f"--steps={steps}",
                          f"--data={data_of(context)}", f"--out={out}"], env=machine.environment(), limit=LIMITS[variant])
    result = json.loads(out.read_text())
    return {**result, "seconds": result["seconds"][WARMUP:], "first_step_s": result["seconds"][0], "loss": result["losses"][-1],
            "gauges": gauged}


def peers(context):
    """Each variant through all models, the most telling first; ours once more behind the first of them."""
    if "reason" in (found := context.peer()):
        yield runner.row("PyTorch", time.monotonic(), "skipped", found["reason"])
        return
    for variant in VARIANTS:
        for name in artifacts.workloads(context):
            def run():
                measured = theirs(context, name, variant)
                return told(name, measured), {"measured": measured}

            def again():
                measured, _ = ours(context, name)
                return told(name, measured), {"measured": measured}
            made = attempt(context, f"{name}: {variant}", run)
            if made["result"] == "FAILED":
                made["result"] = "skipped"  # a peer's trouble is none of ours
            yield made
            if variant == VARIANTS[0]:
                yield attempt(context, f"{name}: ft again", again)


MODELS = (Part("models", run=1, seconds=200, rows=models, alone=True, plans=artifacts.plans_of_workloads),)
PEERS_OF_THEM = (Part("peers", run=2, seconds=360, rows=peers, alone=True, plans=artifacts.plans_of_workloads),)
