"""Training steps of real models on one GPU, ours and PyTorch's in turn."""
import array
import json
import random
import statistics
import struct
import subprocess
import time

import artifacts
import parts

STEPS, WARMUP = 12, 4
SPEEDUP = 1.1  # over torch.compile, which is what we promise


def write_tokens(path, vocab=50257, count=1 << 21):
    """llm.c's format; Zipf-like, so that there is something to learn."""
    source = random.Random(1)
    tokens = array.array("H", (int(vocab * source.random() ** 3) for _ in range(count)))
    path.write_bytes(struct.pack("<256i", 20240520, 1, count, *([0] * 253)) + tokens.tobytes())


def free_bytes():
    query = ["nvidia-smi", "--query-gpu=memory.free", "--format=csv,noheader,nounits"]
    return int(subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]) * 2**20


def choose_plan(context, name):
    """The plan that recomputes least of those that fit, with room for context and libraries."""
    room = free_bytes() - 2 * 2**30
    for remat in artifacts.RECOMPUTATIONS:
        plan = f"bench-{name}-{remat.split(':')[0]}"
        if context.made.explained[plan]["arena_bytes"] <= room:
            return plan, remat
    raise parts.Failed(f"no plan of {name} fits into {room:,} bytes")


def ours(context, name, data):
    plan, remat = choose_plan(context, name)
    out = context.work / "bench.jsonl"
    out.unlink(missing_ok=True)
    text = parts.execute(context, [context.ftexec, context.made.plan(plan), "--device=cuda", f"--data={data}",
                                   f"--steps={STEPS}", "--shuffle=off", "--lr=3e-4", f"--metrics={out}", "--progress=off"])
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    used = [line for line in text.splitlines() if line.startswith("device memory in use")]
    return {"tokens_per_s": statistics.median(r["tokens_per_s"] for r in rows[WARMUP:]),
            "step_ms": statistics.median(r["step_ms"] for r in rows[WARMUP:]), "loss": rows[-1]["loss"],
            "mfu": rows[-1].get("mfu"), "exposed_ms": rows[-1].get("exposed_ms"), "remat": remat,
            "arena_bytes": rows[-1]["arena_bytes"], "announced_bytes": context.made.explained[plan]["arena_bytes"],
            "device_memory": used[-1] if used else ""}


def torch(context, name, data, variant, python):
    out = context.work / "torch.json"
    workload = artifacts.WORKLOADS[name]
    parts.execute(context, [python, artifacts.HERE / "torch_worker.py", name, f"--variant={variant}",
                            f"--batch={workload['batch']}", f"--seq={workload['seq']}", f"--steps={STEPS}", f"--data={data}",
                            f"--out={out}"])
    result = json.loads(out.read_text())
    step = statistics.median(result["seconds"][WARMUP:])
    return {"tokens_per_s": workload["batch"] * workload["seq"] / step, "step_ms": step * 1e3, "loss": result["losses"][-1],
            "peak_bytes": result["peak_reserved"], "allocated_bytes": result["peak_allocated"], "torch": result["torch"]}


def has_torch(python):
    return subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 0


def judge(figures):
    """What falls short of the promise, in words."""
    short = []
    us, compiled = figures["ft"], figures.get("compile")
    if us["tokens_per_s"] < figures["floor"]:
        short.append(f"{figures['floor']:,.0f} tokens/s wanted")
    if compiled and "error" not in compiled and us["tokens_per_s"] < SPEEDUP * compiled["tokens_per_s"]:
        short.append(f"{SPEEDUP} x torch.compile wanted")
    if compiled and "error" not in compiled and us["arena_bytes"] >= compiled["peak_bytes"]:
        short.append("less memory than torch.compile wanted")
    if us["arena_bytes"] != us["announced_bytes"]:
        short.append("the arena is not what was announced")
    return "; ".join(short)


def run_all(context, python):
    data = context.work / "tokens.bin"
    write_tokens(data)
    peers = ["eager", "compile"] if has_torch(python) else []
    for name, workload in artifacts.WORKLOADS.items():
        begin, figures = time.monotonic(), {"floor": workload["floor"]}
        if context.left() < 30:
            yield {"what": name, "result": "skipped", "detail": "no time left", "seconds": 0}
            continue
        try:
            figures["ft"] = ours(context, name, data)
            for variant in peers:
                try:
                    figures[variant] = torch(context, name, data, variant, python)
                except (parts.Failed, subprocess.TimeoutExpired) as error:  # out of memory, perhaps: that is a figure too
                    figures[variant] = {"error": str(error)}
            short = judge(figures)
        except (parts.Failed, subprocess.TimeoutExpired) as error:
            short = str(error)
        yield {"what": name, "result": "FAILED" if short else "passed", "detail": short,
               "seconds": time.monotonic() - begin, **figures}


def text(row):
    lines = [f"{row['result']:8} bench        {row['what']:52} {row['seconds']:6.1f} s  {row['detail']}"]
    for variant in ("ft", "eager", "compile"):
        f = row.get(variant)
        if f and "error" in f:
            lines.append(f"         {variant:8} {f['error']}")
        elif f:
            memory = f.get("arena_bytes") or f["peak_bytes"]
            mfu = f", MFU {f['mfu']:.1%}" if f.get("mfu") else ""
            lines.append(f"         {variant:8} {f['tokens_per_s']:>10,.0f} tokens/s {f['step_ms']:>8.1f} ms "
                         f"{memory / 2**30:>7.2f} GiB  loss {f['loss']:.4f}{mfu}"
                         + (f", recomputation {f['remat']}; {f['device_memory']}" if variant == "ft" else ""))
    return "\n".join(lines)
