"""The conformance program under compute-sanitizer."""
import concurrent.futures
import shutil
import time

import conformance
import runner
from part import Part
from runner import Failed, Skipped, attempt

SHARDS = 4


def sanitizer(context):
    """In several shares side by side: under the tool each takes many times as long."""
    tool = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    if tool is None:
        yield runner.row("compute-sanitizer", time.monotonic(), "skipped", "it is neither on PATH nor in /usr/local/cuda/bin")
        return
    # Errors of CUDA's calls that libraries provoke and handle are none of ours: ours are all checked.
    launcher = [tool, "--tool=memcheck", "--report-api-errors=no", "--error-exitcode=99", "--print-limit=20"]

    def share(number):
        def run():
            env = {**context.environment, "GTEST_TOTAL_SHARDS": str(SHARDS), "GTEST_SHARD_INDEX": str(number)}
            results, said = conformance.run_program(context, launcher=launcher, env=env, limit=600)
            text = said.output if isinstance(said, Failed) else said
            if any(result == "skipped" for result in results.values()) or "Device not supported" in text:
                raise Skipped("the device cannot be opened under it on this machine")
            if isinstance(said, Failed):
                found = [line for line in text.splitlines() if "Invalid" in line or "ERROR SUMMARY" in line]
                raise Failed(found[0].strip("= ") if found else str(said), text)
            return f"{len(results)} tests, no error"
        return attempt(context, f"memcheck over the conformance run, share {number + 1} of {SHARDS}", run)
    with concurrent.futures.ThreadPoolExecutor(SHARDS) as pool:
        yield from pool.map(share, range(SHARDS))


PARTS = (Part("sanitizer", run=2, seconds=400, rows=sanitizer, opened=False),)
