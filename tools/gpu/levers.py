"""What a choice is worth: two ways of training the same model in turn, A B A B, each long enough to tell them apart."""
import dataclasses

import artifacts
import gauges
import models
from part import Part
from runner import Failed, Skipped, attempt

ROUNDS = 2
OF_OTHER_GPUS = "run on GPUs of compute capability"


@dataclasses.dataclass(frozen=True)
class Lever:
    """The way we train by default against another, by options of ftexec or of the plan."""
    what: str
    model: str
    options: tuple = ()
    compiled: tuple = ()  # arguments of `ftc compile` beside those of the model's plan

    def plan(self):
        words = "-".join(option.lstrip("-").replace("=", "-").replace(":", "-") for option in self.compiled)
        return f"lever-{self.model}-{words}"


# The most telling first, as long as time lasts.
LEVERS = (
    Lever("CUDA graph off", "gpt2-124m", options=("--cuda-graph=off",)),
    Lever("our own attention", "gpt2-124m", options=("--attention=own",)),
    Lever("deterministic", "gpt2-124m", options=("--deterministic=on",)),
    Lever("everything computed again", "gpt2-124m", compiled=("--remat=full",)),
    Lever("CUDA graph off", "gpt2-1.5b", options=("--cuda-graph=off",)),
    Lever("deterministic", "qwen2.5-1.5b", options=("--deterministic=on",)),
    Lever("products in fp8", "gpt2-1.5b", compiled=("--fp8-recipe=tensorwise",)),
    Lever("products in fp8", "qwen2.5-1.5b", compiled=("--fp8-recipe=tensorwise",)),
    Lever("products in fp8, by blocks", "qwen2.5-1.5b", compiled=("--fp8-recipe=blockwise",)),
    Lever("bf16 weights alone", "gpt2-124m", compiled=("--master-weights=off", "--stochastic-rounding")),
    Lever("optimizer state in host memory", "gpt2-124m", compiled=("--offload=optimizer",)),
    Lever("CUDA graph off", "qwen2.5-1.5b", options=("--cuda-graph=off",)),
)
SMALL_LEVERS = (
    Lever("CUDA graph off", "gpt2-debug", options=("--cuda-graph=off",)),
    Lever("everything computed again", "gpt2-debug", compiled=("--remat=full",)),
    Lever("products in fp8", "gpt2-debug", compiled=("--fp8-recipe=tensorwise",)),
)


def plans():
    made = artifacts.plans_of_workloads()
    for lever in (*LEVERS, *SMALL_LEVERS):
        if lever.compiled:
            source, options = made[artifacts.bench_plan(lever.model, "none")]
            kept = [option for option in options if not option.startswith("--remat=")]
            made[lever.plan()] = (source, (*kept, *lever.compiled))
    return made


def measured_of(context, lever, changed):
    """One run of a lever, as `measured` of models; A is as it comes, B is changed."""
    if changed and lever.compiled:
        plan = lever.plan()
        try:
            found, _ = models.run_plan(context, plan, models.steps_for(context, lever.model), *lever.options)
        except Failed as failed:
            if OF_OTHER_GPUS in failed.output:
                raise Skipped(failed.output.strip().splitlines()[-1]) from failed
            raise
        return {**found, "announced_bytes": context.made.arena_bytes(plan), "keep": " ".join(lever.compiled)}
    return models.ours(context, lever.model, *(lever.options if changed else ()))[0]


def pull(context, lever):
    workload = {**artifacts.WORKLOADS, **artifacts.SMALL_WORKLOADS}[lever.model]
    tokens, turns = workload["batch"] * workload["seq"], []
    for turn in range(2 * ROUNDS):
        found = measured_of(context, lever, turn % 2 == 1)
        turns.append({"way": "AB"[turn % 2], **models.summary(found["seconds"], tokens), "loss": found["loss"],
                      "arena_bytes": found["arena_bytes"], "keep": found["keep"], "gauges": found["gauges"]})
    rates = {way: [turn["tokens_per_s"] for turn in turns if turn["way"] == way] for way in "AB"}
    gain = sum(rates["B"]) / sum(rates["A"]) - 1
    spread = max((max(found) - min(found)) / min(found) for found in rates.values())
    said = ", ".join(f"{way} {rate:,.0f}" for pair in zip(*rates.values()) for way, rate in zip("AB", pair))
    return (f"{gain:+.1%} (turns apart by {spread:.1%}): {said} tokens/s; {gauges.text(turns[-1]['gauges'])}",
            {"turns": turns, "gain": gain, "spread": spread})


def levers(context):
    for lever in SMALL_LEVERS if context.emulated else LEVERS:
        yield attempt(context, f"{lever.model}: {lever.what}", lambda lever=lever: pull(context, lever))


PARTS = (Part("levers", run=3, seconds=500, rows=levers, alone=True, plans=plans),)
