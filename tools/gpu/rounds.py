"""Ours and PyTorch's in turn: three rounds, each long enough to be timed, of which the medians are compared."""
import math
import statistics
import time

import artifacts
import gauges
import models
import runner
from part import Part
from runner import attempt

ROUNDS = 3
# How PyTorch compiles. The whole of a deep model takes minutes to compile, and was 1 to 5% faster than its blocks on an H100.
VARIANTS = {"gpt2-124m": "compile"}
OTHERWISE = "blocks"


def steps_of_peer(context, name, tokens):
    """So many that those behind the warm-up last TIMED_SECONDS."""
    if context.emulated:
        return models.TORCH_STEPS
    return models.WARMUP + math.ceil(models.TIMED_SECONDS * models.FLOORS["H100"][name] * models.FASTEST / tokens)


def play(context, name):
    workload = {**artifacts.WORKLOADS, **artifacts.SMALL_WORKLOADS}[name]
    tokens, variant = workload["batch"] * workload["seq"], VARIANTS.get(name, OTHERWISE)
    played = []
    for _ in range(ROUNDS):
        ours, _ = models.ours(context, name)
        theirs = models.theirs(context, name, variant, steps_of_peer(context, name, tokens))
        played.append({who: {**models.summary(found["seconds"], tokens), "keep": found["keep"], "gauges": found["gauges"]}
                       for who, found in (("ft", ours), ("peer", theirs))})
    ratio = statistics.median(one["ft"]["tokens_per_s"] / one["peer"]["tokens_per_s"] for one in played)
    said = ", ".join(f"{one['ft']['tokens_per_s']:,.0f} to {one['peer']['tokens_per_s']:,.0f}" for one in played)
    return (f"{ratio:.3f} x torch.compile ({variant}): {said} tokens/s; {gauges.text(played[-1]['ft']['gauges'])}",
            {"rounds": played, "ratio": ratio, "variant": variant})


def rounds(context):
    if "reason" in (found := context.peer()):
        yield runner.row("PyTorch", time.monotonic(), "skipped", found["reason"])
        return
    for name in artifacts.workloads(context):
        yield attempt(context, f"{name}: {ROUNDS} rounds", lambda name=name: play(context, name))


PARTS = (Part("rounds", run=3, seconds=330, rows=rounds, alone=True, plans=artifacts.plans_of_workloads),)
