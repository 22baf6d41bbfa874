"""The conformance program under compute-sanitizer: accesses out of bounds, and races in our own kernels; and races in those that
plans bring along."""
import concurrent.futures
import re
import shutil
import time

import artifacts
import conformance
import runner
from part import Part
from runner import Failed, Skipped, attempt, execute

SHARDS = 16  # small ones: those that ended count, and the next run tries the others
TOGETHER = 4
FOUND = 99  # exit status of a program that is well itself, but in which the tool found something
# Names of our kernels in what racecheck reports: those in namespace ft::cuda, and the entries of every cluster's code.
OURS = re.compile(r"ft::cuda|2ft4cuda|^(kernel|combine)$")
GENERATED_OF = ("gpt2", "llama", "gemma3", "free_transformer", "qwen3_moe", "vit", "bert_classifier")  # presets


def tool(name, *options):
    """The launcher, or None. Errors of CUDA's calls that libraries provoke and handle are none of ours: ours are all checked."""
    path = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    return path and [path, f"--tool={name}", f"--error-exitcode={FOUND}", *options]


def unusable(text):
    """Why the tool proves nothing here, or ""."""
    if "Device not supported" in text:
        return "the device cannot be opened under it on this machine"
    if "Internal Sanitizer Error" in text:
        return "the sanitizer failed itself"
    return ""


def proved(log, said):
    """All that the tool reported, unless it proves nothing: what a program printed is kept in part."""
    found = log.read_text(errors="replace")
    if reason := unusable(found + (said.output if isinstance(said, Failed) else said)):
        raise Skipped(reason)
    return found


def first_lines(text):
    return "".join(text.splitlines(keepends=True)[:runner.LINES_KEPT])


def accesses(text):
    """Names of the kernels with hazards: (ours, others')."""
    names = set(re.findall(r"access at (.+?)\+0x", text))
    ours = {name for name in names if OURS.search(name)}
    return sorted(ours), sorted(names - ours)


def verdict_of_races(found, said, passed):
    """What to say of a run under racecheck, of which it reported `found`. It also reports races in NVIDIA's kernels, which wait by other
    means than it knows; to keep it from them by name breaks it. `passed`: whether what ran was well but for that."""
    ours, others = accesses(found)
    if isinstance(said, Failed) and (ours or not others or not passed):
        raise Failed(f"races in {', '.join(ours)}" if ours else str(said), first_lines(found) + said.output)
    return f"no race in our kernels; reported of {', '.join(name[:40] for name in others)}" if others else "no race"


def in_shares(context, what, launcher, verdict, *options):
    """Side by side: under the tool each takes many times as long."""
    if launcher is None:
        yield runner.row(what, time.monotonic(), "skipped", "compute-sanitizer is neither on PATH nor in /usr/local/cuda/bin")
        return

    def share(number):
        def run():
            env = {**context.environment, "GTEST_TOTAL_SHARDS": str(SHARDS), "GTEST_SHARD_INDEX": str(number)}
            log = context.file(".sanitizer")
            results, said = conformance.run_program(context, *options, launcher=[*launcher, f"--log-file={log}"], env=env, limit=400)
            found = proved(log, said)
            if any(result == "skipped" for result in results.values()):
                raise Skipped(unusable("Device not supported"))
            return f"{len(results)} tests, {verdict(found, said, set(results.values()) == {'passed'})}"
        return attempt(context, f"{what}, share {number + 1} of {SHARDS}", run)
    with concurrent.futures.ThreadPoolExecutor(TOGETHER) as pool:
        yield from pool.map(share, range(SHARDS))


def verdict_of_memory(found, said, passed):
    if isinstance(said, Failed):
        lines = [line for line in found.splitlines() if any(word in line for word in ("Invalid", "ERROR SUMMARY"))]
        raise Failed(lines[0].strip("= ") if lines else str(said), first_lines(found) + said.output)
    return "no error"


def memcheck(context):
    launcher = tool("memcheck", "--report-api-errors=no", "--print-limit=20")
    yield from in_shares(context, "memcheck over the conformance run", launcher, verdict_of_memory, "--deterministic=on")


def racecheck(context):
    """Of shared memory: our own kernels, attention among them, then generated ones."""
    launcher = tool("racecheck", "--print-limit=1000")  # none of ours behind those of others
    yield from in_shares(context, "racecheck of our own kernels", launcher, verdict_of_races, "--deterministic=on", "--attention=own",
                         "--gtest_filter=*MatchesReference*")
    if launcher is None:
        return

    def train(preset):
        def run():
            log = context.file(".sanitizer")
            try:
                said = execute(context, [*launcher, f"--log-file={log}", context.ftexec, context.made.plan(f"{preset}-bf16-full_shard"),
                                         f"--data={context.made.data(preset)}", "--steps=1", "--device=cuda", "--cuda-graph=off",
                                         "--attention=own", "--progress=off", *context.options], limit=400)
            except Failed as error:
                said = error
            return verdict_of_races(proved(log, said), said, not isinstance(said, Failed) or said.status == FOUND)
        return attempt(context, f"racecheck of generated kernels, a step of {preset}", run)
    with concurrent.futures.ThreadPoolExecutor(TOGETHER) as pool:
        yield from pool.map(train, [preset for preset in GENERATED_OF if preset in artifacts.presets(context)])


PARTS = (
    Part("memcheck", run=2, seconds=150, rows=memcheck, opened=False),
    Part("racecheck", run=2, seconds=150, rows=racecheck, opened=False, plans=artifacts.plans_of_presets),
)
