"""Training steps of real models on one GPU, ours and PyTorch's in turn: the most telling runs first, as long as time lasts."""
import array
import json
import random
import re
import statistics
import struct
import time

import artifacts
import machine
import runner
from part import Part
from runner import Failed, attempt, execute

STEPS, WARMUP = 12, 4
SPEEDUP = 1.1  # over torch.compile, which is what we promise
FLOORS_FOR = ("H100", "H200")
BESIDE_ARENA = 2 << 30  # bytes for context and libraries
# Each round goes through all workloads. "blocks" compiles in seconds what takes "compile" minutes with models so deep.
ROUNDS = (("ft", "blocks"), ("eager", "ft"), ("compile",))
LIMITS = {"ft": 90.0, "eager": 90.0, "blocks": 150.0, "compile": 240.0}  # seconds of one run


def write_tokens(path, vocab=50257, count=1 << 20):
    """llm.c's format; Zipf-like, so that there is something to learn."""
    source = random.Random(1)
    tokens = array.array("H", (int(vocab * source.random() ** 3) for _ in range(count)))
    path.write_bytes(struct.pack("<256i", 20240520, 1, count, *([0] * 253)) + tokens.tobytes())


def summary(seconds, tokens):
    """Of the steps after warm-up."""
    step = statistics.median(seconds)
    return {"tokens_per_s": tokens / step, "step_ms": step * 1e3, "steps_timed": len(seconds)}


def run_plan(context, plan, data):
    out = context.file(".jsonl")
    text = execute(context, [context.ftexec, context.made.plan(plan), "--device=cuda", f"--data={data}", f"--steps={STEPS}",
                             "--shuffle=off", "--lr=3e-4", f"--metrics={out}", "--progress=off"], limit=LIMITS["ft"])
    rows = runner.read_json_lines(out)
    used = re.findall(r"device memory in use: (\d+) bytes", text)
    return {"seconds": [row["step_ms"] / 1e3 for row in rows[WARMUP:]], "loss": rows[-1]["loss"],
            **{key: rows[-1].get(key) for key in ("mfu", "exposed_ms", "arena_bytes")},
            "device_bytes": int(used[-1]) if used else None, "output": text}


def ours(context, gpu, name, data):
    """With the plan that recomputes least of those that fit."""
    for remat in artifacts.RECOMPUTATIONS:
        plan = artifacts.bench_plan(name, remat)
        announced = context.made.arena_bytes(plan)
        if announced + BESIDE_ARENA > gpu["bytes"] and remat != artifacts.RECOMPUTATIONS[-1]:
            continue
        try:
            return {**run_plan(context, plan, data), "announced_bytes": announced, "keep": f"recomputation {remat}"}
        except Failed as error:
            # 74 is said of memory too: something else may use the GPU.
            if error.status != 74 or remat == artifacts.RECOMPUTATIONS[-1]:
                raise
    raise Failed(f"no plan of {name}")


def theirs(context, name, data, variant, python, environment):
    out, workload = context.file(".json"), artifacts.WORKLOADS[name]
    execute(context, [python, "-B", artifacts.HERE / "torch_worker.py", name, f"--variant={variant}",
                      f"--batch={workload['batch']}", f"--seq={workload['seq']}", f"--steps={STEPS}", f"--data={data}",
                      f"--out={out}"], env=environment, limit=LIMITS[variant])
    result = json.loads(out.read_text())
    return {**result, "seconds": result["seconds"][WARMUP:], "first_step_s": result["seconds"][0],
            "loss": result["losses"][-1]}


class Workload:
    """What was measured of one model."""

    def __init__(self, name, gpu):
        self.name, self.gpu, self.figures = name, gpu, {}
        self.tokens = artifacts.WORKLOADS[name]["batch"] * artifacts.WORKLOADS[name]["seq"]

    def add(self, variant, result):
        before = self.figures.get(variant, {}).get("seconds", [])
        result["seconds"] = before + result["seconds"]
        self.figures[variant] = {**result, **summary(result["seconds"], self.tokens)}

    def peer(self):
        """The fastest that torch.compile gave."""
        compiled = [self.figures[variant] for variant in ("blocks", "compile") if variant in self.figures]
        return max(compiled, key=lambda figures: figures["tokens_per_s"], default=None)

    def ratio(self):
        return self.figures["ft"]["tokens_per_s"] / self.peer()["tokens_per_s"] if self.peer() else None

    def row(self, seconds, peers):
        made = {"what": self.name, "result": "skipped", "seconds": seconds, "detail": "not measured", "figures": self.figures}
        if "ft" in self.figures:
            short = "; ".join(self.shortcomings())
            compared = bool(self.peer()) or not peers
            made.update(ratio=self.ratio(), result="FAILED" if short else "passed" if compared else "skipped",
                        detail=short or ("" if compared else "torch.compile was not measured"))
        return made

    def shortcomings(self):
        """What falls short of the promise, in words."""
        us, peer, floor = self.figures["ft"], self.peer(), artifacts.WORKLOADS[self.name]["floor"]
        if any(name in self.gpu["name"] for name in FLOORS_FOR) and us["tokens_per_s"] < floor:
            yield f"{floor:,.0f} tokens/s wanted"
        if peer and self.ratio() < SPEEDUP:
            yield f"{SPEEDUP} x torch.compile wanted"
        # When a peer had to recompute whole blocks, it took less memory at the price of time.
        if peer and peer["keep"] != "inputs of blocks" and us["arena_bytes"] >= peer["allocated_bytes"]:
            yield "less memory than torch.compile wanted"
        if us["arena_bytes"] != us["announced_bytes"]:
            yield f"the arena is not what was announced, {us['announced_bytes']} bytes"


def turns(peers):
    """Round by round, (variant, workload)."""
    for variants in ROUNDS:
        for name in artifacts.WORKLOADS:
            for variant in variants:
                if variant == "ft" or peers:
                    yield variant, name


def run_all(context, gpu, peers, python, environment):
    """Rows of all turns, and at last of each workload. peers: whether PyTorch can be compared with."""
    data = context.file(".bin")
    write_tokens(data)
    workloads = {name: Workload(name, gpu) for name in artifacts.WORKLOADS}
    spent = dict.fromkeys(workloads, 0.0)
    for variant, name in turns(peers):
        def run():
            result = (ours(context, gpu, name, data) if variant == "ft"
                      else theirs(context, name, data, variant, python, environment))
            workloads[name].add(variant, result)
            figures = workloads[name].figures[variant]
            return f"{figures['tokens_per_s']:,.0f} tokens/s; {figures['keep']}"
        made = attempt(context, f"{name}: {variant}", run)
        spent[name] += made["seconds"]
        if variant != "ft" and made["result"] != "passed":
            made["result"] = "skipped"  # a peer's trouble is none of ours
        yield made
    for name, workload in workloads.items():
        yield workload.row(round(spent[name], 1), peers)


def text(row):
    """The table of a workload."""
    lines = []
    for variant, f in row.get("figures", {}).items():
        memory = (f"arena {f['arena_bytes'] / 2**30:.2f} GiB" if variant == "ft" else
                  f"allocated {f['allocated_bytes'] / 2**30:.2f}, reserved {f['reserved_bytes'] / 2**30:.2f} GiB")
        beside = f", {f['device_bytes'] / 2**30:.2f} with context and libraries" if f.get("device_bytes") else ""
        mfu = f", MFU {f['mfu']:.1%}" if f.get("mfu") else ""
        lines.append(f"  {variant:8} {f['tokens_per_s']:>10,.0f} tokens/s {f['step_ms']:>8.1f} ms  loss {f['loss']:.4f}  "
                     f"{memory}{beside}{mfu}; {f['keep']}")
    ratio = f"{row['ratio']:.3f} x torch.compile" if row.get("ratio") else "torch.compile was not measured"
    return "\n".join([f"{row['what']}: {ratio}", *lines])


def bench(context):
    peers = "reason" not in context.peer
    if not peers:
        yield runner.row("PyTorch", time.monotonic(), "skipped", context.peer["reason"])
    yield from run_all(context, context.gpus[0], peers, context.python, machine.environment([]))


def bench_plans():
    return artifacts.plans_of_workloads()


PARTS = (Part("bench", run=1, seconds=500, rows=bench, alone=True, plans=bench_plans),)
