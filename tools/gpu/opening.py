"""Whether ftexec opens the GPU, what helps where it does not, and each of NVIDIA's libraries alone."""
import concurrent.futures
import sys

import artifacts
import libraries
import runner
from part import Part
from runner import Failed, Skipped, attempt, execute

FIRST = "ftexec opens the GPU and makes a step"
BF16, FP32 = "gpt2-bf16-no_shard", "gpt2-fp32-no_shard"
# Tried side by side where that fails. What helps first is an option of everything that follows.
WAYS = (
    (BF16, ("--cuda-graph=off",)),
    (BF16, ("--attention=own",)),
    (BF16, ("--attention=own", "--cuda-graph=off")),
    (FP32, ()),
    (FP32, ("--attention=own", "--cuda-graph=off")),
)
ALL_LIBRARIES = ("driver", "cublasLt", "cudnn", "nccl")


def one_step(context, plan, options=()):
    return execute(context, [context.ftexec, context.made.plan(plan), f"--data={context.text}", "--steps=1", "--device=cuda",
                             "--progress=off", *options], limit=60)


def opening(context):
    first = attempt(context, FIRST, lambda: ("", {"output": one_step(context, BF16)}))
    yield first
    if first["result"] == "passed":
        return

    def way(plan, options):
        def run():
            said = one_step(context, plan, options)
            return "helps", {"options": list(options), "output": said}
        return attempt(context, " ".join(["the same with", "fp32" if plan == FP32 else "bf16", *options]), run)
    with concurrent.futures.ThreadPoolExecutor(len(WAYS)) as pool:
        yield from pool.map(way, *zip(*WAYS))


def options_found(rows):
    """Options of ftexec with which it opens the GPU, none where it needs none; None where it never does."""
    passed = [row for row in rows if row["part"] == "opening" and row["result"] == "passed"]
    return next((tuple(row.get("options", ())) for row in passed), None)


def the_bundles(context, library, said):
    """What was said of a library, which of NCCL is that of the bundle, where it has one: an older one lets no ranks share a GPU."""
    folder = context.made.nccl() if library == "nccl" else None
    if folder and str(folder.resolve()) not in said:
        raise Failed(f"the bundle's NCCL in {folder} is not the one that was loaded: {said}")
    return said


def alone(context):
    names = libraries.names_in(context.made.program("ftexec"))

    def check(library):
        def run():
            if library not in names:
                raise Skipped("ftexec was built without it")
            command = [sys.executable, "-B", artifacts.HERE / "libraries.py", library, names[library]]
            if context.emulated:
                if library != "nccl" or not context.made.nccl():
                    raise Skipped("GPUs are emulated, and so is what it does")
                return the_bundles(context, library, execute(context, [*command, "--load-only"], limit=30).strip())
            try:
                return the_bundles(context, library, execute(context, command, limit=60).strip())
            except Failed as error:
                if library == "nccl" and context.devices == 1 and "cannot open shared object" in str(error):
                    raise Skipped(f"ranks of one GPU need none: {error}") from error
                raise
        return attempt(context, f"{library} alone", run)
    with concurrent.futures.ThreadPoolExecutor(len(ALL_LIBRARIES)) as pool:
        yield from pool.map(check, ALL_LIBRARIES)


PARTS = (
    Part("opening", run=1, seconds=100, rows=opening, alone=True, opened=False, plans=artifacts.plans_of_presets),
    Part("libraries", run=1, seconds=60, rows=alone, opened=False),
)
