"""The conformance program under compute-sanitizer: accesses out of bounds, and races in our own kernels."""
import concurrent.futures
import shutil
import time

import conformance
import machine
import runner
from part import Part
from runner import Failed, Skipped, attempt

SHARDS = 16  # small ones: those that ended count, and the next run tries the others
TOGETHER = 4
OWN_KERNELS = "kns=2ft4cuda"  # part of the mangled names in namespace ft::cuda


def tool(name, *options):
    """The launcher, or None. Errors of CUDA's calls that libraries provoke and handle are none of ours: ours are all checked."""
    path = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    return path and [path, f"--tool={name}", "--error-exitcode=99", "--print-limit=20", *options]


def in_shares(context, what, launcher, *options):
    """Side by side: under the tool each takes many times as long."""
    if launcher is None:
        yield runner.row(what, time.monotonic(), "skipped", "compute-sanitizer is neither on PATH nor in /usr/local/cuda/bin")
        return

    def share(number):
        def run():
            env = {**context.environment, "GTEST_TOTAL_SHARDS": str(SHARDS), "GTEST_SHARD_INDEX": str(number)}
            results, said = conformance.run_program(context, *options, launcher=launcher, env=env, limit=400)
            text = said.output if isinstance(said, Failed) else said
            if any(result == "skipped" for result in results.values()) or "Device not supported" in text:
                raise Skipped("the device cannot be opened under it on this machine")
            if isinstance(said, Failed):
                found = [line for line in text.splitlines() if any(word in line for word in ("Invalid", "hazard", "ERROR SUMMARY"))]
                raise Failed(found[0].strip("= ") if found else str(said), text)
            return f"{len(results)} tests, no error"
        return attempt(context, f"{what}, share {number + 1} of {SHARDS}", run)
    with concurrent.futures.ThreadPoolExecutor(TOGETHER) as pool:
        yield from pool.map(share, range(SHARDS))


def memcheck(context):
    launcher = tool("memcheck", "--report-api-errors=no")
    yield from in_shares(context, "memcheck over the conformance run", launcher, "--deterministic=on")


def racecheck(context):
    """Shared memory of our own kernels, attention among them; libraries' would take hours."""
    launcher = tool("racecheck")
    if launcher and "kernel-regex" in machine.output_of([launcher[0], "--help"], 30):
        launcher.append(f"--kernel-regex={OWN_KERNELS}")
    yield from in_shares(context, "racecheck of our own kernels", launcher, "--deterministic=on", "--attention=own",
                         "--gtest_filter=*MatchesReference*")


PARTS = (
    Part("memcheck", run=2, seconds=150, rows=memcheck, opened=False),
    Part("racecheck", run=2, seconds=150, rows=racecheck, opened=False),
)
