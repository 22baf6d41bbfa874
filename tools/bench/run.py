#!/usr/bin/python3
"""Times training steps with us and with PyTorch, alternately, in one go (Python's standard library only).

    tools/bench/run.py [WORKLOAD ...] [--rounds=3] [--steps=12] [--peers=eager,compile] [--json=FILE]

One round runs every variant once, on the same cores, one after the other, and starts with another variant each time; what is
printed are medians over the rounds, with the smallest and largest in brackets:
  step      median time of a step, first two left out
  tokens/s  tokens of all ranks in a step / that time
  start-up  from the start of the process to the end of its first step
  peak      largest resident memory of a process, summed over ranks (a page shared by two ranks counts twice)
and each peer's ratio to us (above 1: we are better). PyTorch runs in the environment that scripts/venv makes.
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

# preset, rows and tokens of a batch per rank, ranks, threads per rank, our strategy, peers
WORKLOADS = {
    "gpt2-124m": dict(preset="124m", batch=4, seq=64, ranks=1, threads=2, strategy="no_shard",
                      peers=["eager", "eager-fused", "compile"]),
    "gpt2-124m-2ranks": dict(preset="124m", batch=4, seq=64, ranks=2, threads=1, strategy="full_shard",
                             peers=["fully_shard"]),
    "smoke": dict(preset="debug", batch=4, seq=64, ranks=1, threads=1, strategy="no_shard", peers=["eager"]),
    "smoke-2ranks": dict(preset="debug", batch=4, seq=64, ranks=2, threads=1, strategy="full_shard",
                         peers=["fully_shard"]),
}
DEFAULT = ["gpt2-124m", "gpt2-124m-2ranks"]
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


def run_ours(workload, steps, work, log):
    plan, metrics = work / "plan.bin", work / "metrics.jsonl"
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
            "losses": [m["loss"] for m in lines]}


def run_torch(variant, workload, steps, work, log, python):
    out = work / "torch.json"
    def command(rank):
        return [python, str(ROOT / "tools/bench/torch_worker.py"), f"--variant={variant}",
                f"--preset={workload['preset']}", f"--batch={workload['batch']}", f"--seq={workload['seq']}",
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


def measure(name, workload, args, work):
    """variant -> list of figures, one a round."""
    write_tokens(work / "tokens.bin", 256 if workload["preset"] == "debug" else 50257)
    ftc = str(ROOT / "build/bin/ftc")
    log_path = work / "log"
    if not args.only_peers:
        subprocess.run([ftc, "model", "gpt2", f"--preset={workload['preset']}", f"--batch={workload['batch']}",
                        f"--seq={workload['seq']}", "-o", work / "model.mlir"], check=True)
        subprocess.run([ftc, "compile", work / "model.mlir", f"--strategy={workload['strategy']}", "-o",
                        work / "plan.bin"], check=True)
    variants = ([] if args.only_peers else ["ft"]) + [p for p in workload["peers"] if not args.peers or p in args.peers]
    runs = {variant: [] for variant in variants}
    for round_number in range(args.rounds):
        for i in range(len(variants)):
            variant = variants[(i + round_number) % len(variants)]
            print(f"{name}: round {round_number + 1} of {args.rounds}: {variant}", file=sys.stderr, flush=True)
            with open(log_path, "w", encoding="utf-8") as log:
                try:
                    run = (run_ours(workload, args.steps, work, log) if variant == "ft"
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
    return runs


def summary(rounds):
    return {key: {"median": statistics.median(r[key] for r in rounds), "min": min(r[key] for r in rounds),
                  "max": max(r[key] for r in rounds)} for key in rounds[0]}


def table(name, workload, results):
    ours = results.get("ft")
    print(f"\n{name}: GPT-2 {workload['preset']}, batch {workload['batch']} x {workload['seq']} tokens a rank, float32, "
          f"{workload['ranks']} rank(s) x {workload['threads']} thread(s), {workload['strategy']}")
    print(f"{'':14}{'step ms':>26}{'tokens/s':>11}{'start-up s':>12}{'peak MiB':>10}"
          f"{'| speed':>9}{'start-up':>10}{'memory':>8}")
    for variant, s in results.items():
        step = s["step_ms"]
        row = (f"{variant:14}{step['median']:>10.1f} [{step['min']:>6.1f},{step['max']:>7.1f}]"
               f"{s['tokens_per_s']['median']:>11.0f}{s['startup_s']['median']:>12.2f}{s['peak_mib']['median']:>10.0f}")
        if ours and variant != "ft":
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
            runs = measure(name, WORKLOADS[name], args, pathlib.Path(work))
        results[name] = {variant: summary(rounds) for variant, rounds in runs.items()}
        table(name, WORKLOADS[name], results[name])
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({"cores": os.cpu_count(), "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
