#!/usr/bin/python3
"""Times training steps with us and with PyTorch, alternately, in one go (Python's standard library only).

    tools/bench/run.py [WORKLOAD ...] [--rounds=3] [--steps=12] [--peers=eager,compile] [--json=FILE]

One round runs every variant once, on the same cores, one after the other, and starts with another variant each time; what is
printed are medians over the rounds, with the smallest and largest in brackets:
  step      median time of a step, first two left out
  tokens/s  tokens of all ranks in a step / that time
  start-up  from the start of the process to the end of its first step
  peak      largest resident memory of a process, summed over ranks (a page shared by two ranks counts twice)
and each peer's ratio to us (above 1: we are better): to ft-bf16 for peers under bf16 autocast, else to ft. PyTorch runs in the
environment that scripts/venv makes. Before the tables stands which instruction set our kernels used, and whether this CPU multiplies bf16.
"""
import argparse
import array
import json
import math
import os
import pathlib
import random
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WARMUP = 2  # steps left out of a median

# Family and dimensions of each model, with the names of reference.py; --hidden and so on of `ftc model`.
GPT2_124M = dict(family="gpt2", hidden=768, layers=12, heads=12, ffn=3072, vocab=50257, context=1024)
DEBUG = dict(family="gpt2", hidden=64, layers=2, heads=4, ffn=256, vocab=256, context=64)
CHAR_GPT = dict(family="gpt2", hidden=128, layers=4, heads=4, ffn=512, vocab=256, context=64)
GPT_384 = dict(family="gpt2", hidden=384, layers=6, heads=6, ffn=1536, vocab=50304, context=256)
LLAMA_512 = dict(family="llama", hidden=512, layers=8, heads=8, kv_heads=2, ffn=1408, vocab=4096, context=2048)
BOTH = ["ft", "ft-bf16", "compile", "compile-bf16"]  # both precisions, alternately in one run


def workload(model, batch, seq, variants, ranks=1, threads=2, strategy="no_shard"):
    """Rows and tokens of a batch per rank, what to time, ranks, threads per rank, our strategy."""
    return dict(model=model, batch=batch, seq=seq, variants=variants, ranks=ranks, threads=threads, strategy=strategy)


WORKLOADS = {
    "gpt2-124m": workload(GPT2_124M, 4, 64, ["ft", "ft-bf16", "eager", "eager-fused", "compile", "compile-bf16"]),
    "gpt2-124m-2ranks": workload(GPT2_124M, 4, 64, ["ft", "fully_shard"], ranks=2, threads=1, strategy="full_shard"),
    "char-gpt": workload(CHAR_GPT, 12, 64, BOTH),
    "gpt-384": workload(GPT_384, 8, 256, BOTH),
    "llama-t512": workload(LLAMA_512, 2, 512, BOTH),
    "llama-t2048": workload(LLAMA_512, 1, 2048, BOTH),
    "smoke": workload(DEBUG, 4, 64, ["ft", "ft-bf16", "eager"], threads=1),
    "smoke-2ranks": workload(DEBUG, 4, 64, ["ft", "fully_shard"], ranks=2, threads=1, strategy="full_shard"),
}
DEFAULT = ["gpt2-124m", "gpt2-124m-2ranks", "char-gpt", "gpt-384", "llama-t512", "llama-t2048"]
FALLBACK = {"fully_shard": "ddp"}  # what stands in for a peer that does not run


class RunFailed(Exception):
    pass


def write_tokens(path, vocab, count=1 << 20):
    """Tokens in llm.c's format; Zipf-like, so that there is something to learn."""
    source = random.Random(1)
    tokens = array.array("H", (int(vocab * source.random() ** 3) for _ in range(count)))
    path.write_bytes(struct.pack("<256i", 20240520, 1, count, *([0] * 253)) + tokens.tobytes())


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def rank_environment(rank, workload, port):
    env = dict(os.environ, OMP_NUM_THREADS=str(workload["threads"]))
    if workload["ranks"] > 1:
        env.update(RANK=str(rank), WORLD_SIZE=str(workload["ranks"]), LOCAL_RANK=str(rank),
                   LOCAL_WORLD_SIZE=str(workload["ranks"]), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    return env


def run_ranks(command, workload, log):
    """Runs one process a rank, each on cores of its own. Returns (start time, peak resident bytes of each rank)."""
    cores, threads = sorted(os.sched_getaffinity(0)), workload["threads"]
    port, started = free_port(), time.monotonic()
    processes = []
    for rank in range(workload["ranks"]):
        mine = [cores[(rank * threads + i) % len(cores)] for i in range(threads)]
        processes.append(subprocess.Popen(
            ["taskset", "-c", ",".join(map(str, mine))] + command(rank), stdin=subprocess.DEVNULL, stdout=log,
            stderr=subprocess.STDOUT, env=rank_environment(rank, workload, port)))
    peaks, failed = [], []
    for process in processes:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            failed.append(process.returncode)
            for other in processes:  # the others may wait for this one for long
                if other.returncode is None:
                    other.terminate()
        peaks.append(usage.ru_maxrss * 1024)
    if failed:
        raise RunFailed(f"exit status {failed[0]}")
    return started, peaks


class FirstLine(threading.Thread):
    """Looks 200 times a second for a file's first complete line; `seen` is the clock at which it was there."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.seen, self.ended = path, None, threading.Event()

    def run(self):
        while self.seen is None:
            ended = self.ended.wait(0.005)  # read before the last look, so that a line written just before counts
            if self.path.exists() and b"\n" in self.path.read_bytes():
                self.seen = time.monotonic()
            if ended:
                return

    def stop(self):
        self.ended.set()
        self.join()


def is_ours(variant):
    return variant in ("ft", "ft-bf16")


def run_ours(variant, workload, steps, work, log):
    plan, metrics = work / f"{variant}.bin", work / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    command = [str(ROOT / "build/bin/ftexec"), str(plan), f"--data={work / 'tokens.bin'}", f"--steps={steps}",
               f"--threads={workload['threads']}", "--lr=3e-4", "--shuffle=off", f"--metrics={metrics}",
               "--progress=off"]
    # ftexec reports no clock, so the end of the first step is when its line appears in the metrics file.
    first_line = FirstLine(metrics)
    first_line.start()
    try:
        started, peaks = run_ranks(lambda rank: command, workload, log)
    finally:
        first_line.stop()
    if first_line.seen is None:
        raise RunFailed(f"ftexec wrote no line to {metrics}")
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    return {"step_s": [m["step_ms"] / 1e3 for m in lines], "startup_s": first_line.seen - started, "peaks": peaks,
            "losses": [m["loss"] for m in lines], "instruction_set": lines[0]["instruction_set"]}


def run_torch(variant, workload, steps, work, log, python):
    out = work / "torch.json"
    def command(rank):
        return [python, str(ROOT / "tools/bench/torch_worker.py"), f"--variant={variant}",
                f"--model={json.dumps(workload['model'])}", f"--batch={workload['batch']}", f"--seq={workload['seq']}",
                f"--steps={steps}", f"--threads={workload['threads']}", f"--data={work / 'tokens.bin'}",
                f"--out={out if rank == 0 else work / f'torch{rank}.json'}"]
    started, peaks = run_ranks(command, workload, log)
    result = json.loads(out.read_text())
    return {"step_s": [end - begin for begin, end in result["steps"]], "startup_s": result["steps"][0][1] - started,
            "peaks": peaks, "losses": result["losses"]}


def figures(run, workload):
    if not all(loss is not None and math.isfinite(loss) for loss in run["losses"]):
        raise RunFailed(f"losses are {run['losses']}")
    step = statistics.median(run["step_s"][WARMUP:])
    return {"step_ms": step * 1e3, "tokens_per_s": workload["ranks"] * workload["batch"] * workload["seq"] / step,
            "startup_s": run["startup_s"], "peak_mib": sum(run["peaks"]) / 2**20,
            "peak_rank_mib": max(run["peaks"]) / 2**20}


def compile_ours(name, workload, variants, work):
    """Plans of our variants, as work/VARIANT.bin."""
    ftc, model = str(ROOT / "build/bin/ftc"), workload["model"]
    dimensions = [f"--{key.replace('_', '-')}={value}" for key, value in model.items() if key != "family"]
    subprocess.run([ftc, "model", model["family"], *dimensions, f"--batch={workload['batch']}", f"--seq={workload['seq']}", "-o",
                    work / "model.mlir"], check=True)
    for variant in filter(is_ours, variants):
        precision = "bf16" if variant == "ft-bf16" else "no"
        subprocess.run([ftc, "compile", work / "model.mlir", f"--strategy={workload['strategy']}", f"--mixed-precision={precision}",
                        "-o", work / f"{variant}.bin"], check=True)


def measure(name, workload, args, work):
    """variant -> list of figures, one a round; and the instruction set that our kernels used."""
    write_tokens(work / "tokens.bin", workload["model"]["vocab"])
    log_path = work / "log"
    variants = [v for v in workload["variants"] if not args.only_peers if is_ours(v)]
    variants += [v for v in workload["variants"] if not is_ours(v) and (not args.peers or v in args.peers)]
    compile_ours(name, workload, variants, work)
    instruction_set = None
    runs = {variant: [] for variant in variants}
    for round_number in range(args.rounds):
        for i in range(len(variants)):
            variant = variants[(i + round_number) % len(variants)]
            print(f"{name}: round {round_number + 1} of {args.rounds}: {variant}", file=sys.stderr, flush=True)
            with open(log_path, "w", encoding="utf-8") as log:
                try:
                    run = (run_ours(variant, workload, args.steps, work, log) if is_ours(variant)
                           else run_torch(variant, workload, args.steps, work, log, args.python))
                except RunFailed as error:
                    tail = "\n".join(log_path.read_text(errors="replace").splitlines()[-15:])
                    if variant in FALLBACK and not runs[variant]:
                        print(f"{name}: {variant} does not run here ({error}), {FALLBACK[variant]} stands in for it:\n{tail}",
                              file=sys.stderr)
                        del runs[variant]
                        variants[variants.index(variant)] = variant = FALLBACK[variant]
                        runs[variant] = []
                        run = run_torch(variant, workload, args.steps, work, log, args.python)
                    else:
                        raise SystemExit(f"{name}: {variant} failed: {error}\n{tail}") from None
            runs[variant].append(figures(run, workload))
            instruction_set = run.get("instruction_set", instruction_set)
    return runs, instruction_set


def summary(rounds):
    return {key: {"median": statistics.median(r[key] for r in rounds), "min": min(r[key] for r in rounds),
                  "max": max(r[key] for r in rounds)} for key in rounds[0]}


def machine_line(instruction_set):
    """What bf16 runs on; about our kernels, which torch's need not follow."""
    if instruction_set is None:
        return "our kernels did not run"
    bf16 = {"bf16": "bf16 is multiplied by VDPBF16PS", "amx": "bf16 is multiplied by AMX, attention too"}.get(
        instruction_set.partition("+")[2],
        "this CPU lacks AVX512_BF16: bf16 is converted to fp32 to be multiplied, and gains nothing but memory")
    return f"our kernels used {instruction_set}; {bf16}"


def table(name, workload, results, instruction_set):
    model = ", ".join(f"{key} {value}" for key, value in workload["model"].items() if key != "family")
    print(f"\n{name}: {workload['model']['family']} ({model}), batch {workload['batch']} x {workload['seq']} tokens a rank, "
          f"{workload['ranks']} rank(s) x {workload['threads']} thread(s), {workload['strategy']}\n{machine_line(instruction_set)}")
    print(f"{'':14}{'step ms':>26}{'tokens/s':>11}{'start-up s':>12}{'peak MiB':>10}"
          f"{'| speed':>9}{'start-up':>10}{'memory':>8}")
    for variant, s in results.items():
        step = s["step_ms"]
        row = (f"{variant:14}{step['median']:>10.1f} [{step['min']:>6.1f},{step['max']:>7.1f}]"
               f"{s['tokens_per_s']['median']:>11.0f}{s['startup_s']['median']:>12.2f}{s['peak_mib']['median']:>10.0f}")
        ours = results.get("ft-bf16" if variant.endswith("-bf16") else "ft")
        if variant == "ft-bf16" and "ft" in results:
            row += f"   {results['ft']['step_ms']['median'] / step['median']:.2f}x as fast as our own fp32"
        elif ours and not is_ours(variant):
            row += (f"{'| ' + format(step['median'] / ours['step_ms']['median'], '.2f') + 'x':>9}"
                    f"{s['startup_s']['median'] / ours['startup_s']['median']:>9.2f}x"
                    f"{s['peak_mib']['median'] / ours['peak_mib']['median']:>7.2f}x")
        print(row)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", default=DEFAULT, metavar="WORKLOAD", help=", ".join(WORKLOADS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--peers", type=lambda s: s.split(","), help="only these of the workload's peers")
    parser.add_argument("--only-peers", action="store_true", help="leave us out")
    parser.add_argument("--python", default=str(ROOT / "build/venv/bin/python"), help="the one that has torch")
    parser.add_argument("--json", help="write all figures to this file")
    args = parser.parse_args()
    unknown = [w for w in args.workloads if w not in WORKLOADS]
    if unknown:
        parser.error(f"unknown workload {unknown[0]}; known: {', '.join(WORKLOADS)}")
    if args.steps <= WARMUP:
        parser.error(f"--steps must be more than {WARMUP}, which are left out")
    return args


def main():
    args = parse()
    results = {}
    for name in args.workloads:
        with tempfile.TemporaryDirectory(prefix="ft-bench-") as work:
            runs, instruction_set = measure(name, WORKLOADS[name], args, pathlib.Path(work))
        results[name] = {variant: summary(rounds) for variant, rounds in runs.items()}
        table(name, WORKLOADS[name], results[name], instruction_set)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({"cores": os.cpu_count(), "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
