#!/usr/bin/python3
"""Times saving and loading of checkpoints with us and with torch.distributed.checkpoint, alternately, in one go.

    tools/bench/checkpoints.py [--rounds=5] [--folder=DIR] [--json=FILE]

GPT-2 124M with AdamW in fp32 (1.5 GB of state) on two ranks of one thread each, fully sharded; the same disk, both sides fsync what
they write, and the page cache is dropped before anything is read (needs root). What is printed are medians over the rounds, with the
smallest and largest in brackets:
  save       from the call until the checkpoint is committed, while the ranks wait (--async-save=off; dcp.save)
  async      the same while they could go on (--async-save=on; dcp.async_save)
  stall      how long the ranks stood still for it
  load       of all state into a process that holds other values
of the slower rank, and beside them
  disk       bytes that two processes write with fsync, or read, at once and in order: what the disk gives to anyone
  direct     the same past the page cache, as dd does it with oflag=direct and iflag=direct
  copy       as their stall: each rank's bytes from memory to memory, both at once, the median of as many copies as saves were timed
"""
import argparse
import json
import mmap
import multiprocessing
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile
import time

import run

WORKLOAD = run.workload(run.GPT2_124M, 1, 64, ["ft"], ranks=2, threads=1, strategy="full_shard")
LINE = re.compile(r"of this rank in ([\d.]+) s, training stood still for ([\d.]+) ms")
LOADED = re.compile(r"([\d.]+) MiB of this rank in ([\d.]+) s")
CHUNK = 8 << 20
STEPS_A_SAVE = 4  # so that a save has ended when the next one is due


def drop_page_cache():
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3\n")


def ours(work, kind, rounds_of_saves):
    """Saves of the state after steps 1, 2 ...: the first is left out, as its memory is touched then. kind: full, sharded."""
    folder = work / f"ft-{kind}"
    result = {}
    for mode in ("save", "async"):
        shutil.rmtree(folder, ignore_errors=True)
        drop_page_cache()
        lines = train(work, "--checkpoint-dir", folder, f"--state-dict-type={kind}", f"--steps={STEPS_A_SAVE * (rounds_of_saves + 1)}",
                      f"--save-every={STEPS_A_SAVE}", f"--async-save={'on' if mode == 'async' else 'off'}")
        saves = [tuple(map(float, found)) for found in LINE.findall(lines)][1:]
        result[mode] = statistics.median(seconds for seconds, _ in saves)
        if mode == "async":
            result["stall"] = statistics.median(ms for _, ms in saves) / 1e3
    drop_page_cache()
    lines = train(work, "--checkpoint-dir", folder, f"--state-dict-type={kind}", f"--steps={STEPS_A_SAVE * (rounds_of_saves + 1)}", "--resume=auto")
    (resumed,) = [line for line in lines.splitlines() if "resumed from" in line]
    result["load"] = float(LOADED.search(resumed).group(2))
    shutil.rmtree(folder)
    return result


def train(work, *flags):
    log_path = work / "log"
    with open(log_path, "w", encoding="utf-8") as log:
        command = [str(run.ROOT / "build/bin/ftexec"), str(work / "ft.bin"), f"--data={work / 'tokens.bin'}", "--threads=1", "--lr=3e-4",
                   "--progress=off", *map(str, flags)]
        try:
            run.run_ranks(lambda rank: command, WORKLOAD, log)
        except run.RunFailed as error:
            raise SystemExit(f"ftexec failed: {error}\n{log_path.read_text(errors='replace')}") from None
    return log_path.read_text()


def peer(work, python, saves):
    """torch.distributed.checkpoint with fully_shard. The worker asks for a dropped page cache by itself."""
    out = work / "torch.json"
    with open(work / "log", "w", encoding="utf-8") as log:
        command = [python, str(run.ROOT / "tools/bench/torch_checkpoints.py"), f"--model={json.dumps(run.GPT2_124M)}",
                   f"--folder={work / 'dcp'}", f"--saves={saves}", f"--out={out}"]
        drop_page_cache()
        try:
            run.run_ranks(lambda rank: command, WORKLOAD, log)
        except run.RunFailed as error:
            raise SystemExit(f"PyTorch failed: {error}\n{(work / 'log').read_text(errors='replace')}") from None
    shutil.rmtree(work / "dcp")
    return json.loads(out.read_text())


def disk(work, bytes_each, flags):
    """What two processes reach that write, or read, `bytes_each` bytes each, in whole chunks."""
    chunks = [(work / f"disk{i}", bytes_each // CHUNK, flags) for i in range(2)]
    result = {"save": together(write_file, chunks)}
    drop_page_cache()
    result["load"] = together(read_file, chunks)
    for path, *_ in chunks:
        path.unlink()
    return result


def together(function, arguments):
    with multiprocessing.Pool(2) as pool:
        return max(pool.starmap(function, arguments, chunksize=1))


def pages(count):
    """`count` chunks of memory that begin with a page, as O_DIRECT needs it, on huge pages, as the state lies on."""
    memory = mmap.mmap(-1, count * CHUNK, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(memory)


def write_file(path, count, flags):
    chunks = pages(count)
    for i in range(count):
        chunks[i * CHUNK:(i + 1) * CHUNK] = os.urandom(CHUNK)  # a disk may know what it has already
    begin = time.monotonic()
    file = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o600)
    os.posix_fallocate(file, 0, count * CHUNK)
    for i in range(count):
        if os.write(file, chunks[i * CHUNK:(i + 1) * CHUNK]) != CHUNK:
            raise SystemExit(f"{path}: written in part")
    os.fsync(file)
    os.close(file)
    return time.monotonic() - begin


def read_file(path, count, flags):
    buffer, begin = pages(1), time.monotonic()
    with open(os.open(path, os.O_RDONLY | flags), "rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, count * CHUNK, os.POSIX_FADV_SEQUENTIAL)
        while file.readinto(buffer):
            pass
    return time.monotonic() - begin


def copy(count, times):
    """The median of all but the first, which touches the pages."""
    source, to, seconds = pages(count), pages(count), []
    for i in range(count):
        source[i * CHUNK:(i + 1) * CHUNK] = os.urandom(CHUNK)
    for _ in range(times + 1):
        begin = time.monotonic()
        to[:] = source
        seconds.append(time.monotonic() - begin)
    return statistics.median(seconds[1:])


def table(results, state_bytes):
    print(f"\n{state_bytes / 1e9:.2f} GB of state, 2 ranks; seconds\n{'':22}" + "".join(f"{key:>24}" for key in ("save", "async", "stall", "load")))
    for name, rounds in results.items():
        row = f"{name:22}"
        for key in ("save", "async", "stall", "load"):
            values = [figures[key] for figures in rounds if key in figures]
            row += (f"{statistics.median(values):>9.3f} [{min(values):>5.3f},{max(values):>6.3f}]" if values else f"{'':23}").rjust(24)
        print(row)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--saves", type=int, default=3, help="of each kind in a round, without the first")
    parser.add_argument("--only", type=lambda s: s.split(","), help="ft sharded, ft full, torch.distributed, disk, direct, copy")
    parser.add_argument("--folder", default=None, help="where to save; its disk is what is measured")
    parser.add_argument("--python", default=str(run.ROOT / "build/venv/bin/python"), help="the one that has torch")
    parser.add_argument("--json", help="write all figures to this file")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ft-bench-", dir=args.folder) as folder:
        work = pathlib.Path(folder)
        run.write_tokens(work / "tokens.bin", run.GPT2_124M["vocab"])
        run.compile_ours("checkpoints", WORKLOAD, ["ft"], work)
        state_bytes = 3 * 4 * 124_439_808
        variants = [("ft sharded", lambda: ours(work, "sharded", args.saves)), ("torch.distributed", lambda: peer(work, args.python, args.saves)),
                    ("ft full", lambda: ours(work, "full", args.saves)), ("disk", lambda: disk(work, state_bytes // 2, 0)),
                    ("direct", lambda: disk(work, state_bytes // 2, os.O_DIRECT)),
                    ("copy", lambda: {"stall": together(copy, [(state_bytes // 2 // CHUNK, args.saves)] * 2)})]
        variants = [variant for variant in variants if not args.only or variant[0] in args.only]
        results = {name: [] for name, _ in variants}
        for i in range(args.rounds):
            for name, measure in variants[i % len(variants):] + variants[:i % len(variants)]:
                results[name].append(measure())
                figures = ", ".join(f"{key} {value:.3f}" for key, value in results[name][-1].items())
                print(f"round {i + 1} of {args.rounds}: {name}: {figures}", flush=True)
    table(results, state_bytes)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
