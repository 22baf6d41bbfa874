"""Training on GPUs against the CPU, against other strategies, and against what was announced of it."""
import os
import re

import artifacts
import runner
from part import Part
from runner import Failed, Skipped, attempt, execute


def train(context, plan, device, *options, world=1, steps=None, env=None):
    """Metrics of all steps."""
    out, steps, preset = context.file(".jsonl"), steps or context.steps, plan.split("-")[0]
    if device == "cuda":
        own = ("--attention=own",) if preset in artifacts.OWN_ATTENTION and "--attention=own" not in context.options else ()
        options = (*options, *context.options, *own)
    launcher = [] if world == 1 else [context.made.program("ftrun"), f"--nproc-per-node={world}", "--standalone"]
    ftexec = context.ftexec if device == "cuda" else context.made.program("ftexec")
    execute(context, [*launcher, ftexec, context.made.plan(plan), f"--data={context.made.data(preset)}", f"--steps={steps}",
                      f"--device={device}", f"--metrics={out}", "--progress=off", *options], env=env)
    rows = runner.read_json_lines(out)
    if len(rows) != steps:
        raise Failed(f"{len(rows)} steps in the metrics, expected {steps}")
    return rows


def numbers(rows):
    return [(r["loss"], r["grad_norm"]) for r in rows]


def worst(rows, others):
    """Largest relative difference of losses; infinite where one is not a number."""
    pairs = [(a["loss"], b["loss"]) for a, b in zip(rows, others)]
    if any(not isinstance(value, (int, float)) for pair in pairs for value in pair):
        return float("inf")
    return max(abs(a - b) / abs(b) for a, b in pairs)


def check_fp32(rows, others):
    """Two devices differ by the order of sums in fp32; 1e-4 after 20 steps is far above that, and far below any mistake."""
    difference = worst(rows, others)
    if not difference <= 1e-4:
        raise Failed(f"losses differ by up to {difference:.2e} of their value, at most 1e-4 is allowed")
    return f"losses within {difference:.1e}"


def presets(context):
    """Against the CPU. In bf16 the two also round at other places: a GPU may be twice as far from fp32 as the CPU is."""
    threads = f"--threads={max(1, (os.cpu_count() or 2) // 2)}"

    @runner.once
    def cpu(preset, precision):
        return train(context, f"{preset}-{precision}-full_shard", "cpu", threads)

    for preset in artifacts.presets(context):
        def fp32():
            return check_fp32(train(context, f"{preset}-fp32-full_shard", "cuda"), cpu(preset, "fp32"))

        def bf16():
            rows, exact = train(context, f"{preset}-bf16-full_shard", "cuda"), cpu(preset, "fp32")
            allowed, difference = 2 * worst(cpu(preset, "bf16"), exact), worst(rows, exact)
            if not difference <= allowed:
                raise Failed(f"losses differ from fp32 by up to {difference:.2e} of their value, {allowed:.2e} is allowed")
            return f"losses within {difference:.1e} of fp32 ({allowed:.1e} allowed)"
        yield attempt(context, f"{preset} fp32 against the CPU, {context.steps} steps", fp32)
        yield attempt(context, f"{preset} bf16 against the CPU, {context.steps} steps", bf16)


def strategies_on(context, world, env=None):
    """The same bits whatever the strategy. With two axes of more than one rank, hybrid strategies also round between their two
    sums in bf16: then they agree with each other. Two axes where the tree of one sum is that of two, with a power of two."""
    mesh = (f"--mesh=replica:2,shard:{world // 2}",) if world > 1 and world & (world - 1) == 0 else ()

    @runner.once
    def trained(precision, strategy):
        options = ("--deterministic=on", *(mesh if strategy.startswith("hybrid") else ()))
        return numbers(train(context, f"gpt2-{precision}-{strategy}", "cuda", *options, world=world, env=env))

    for precision in artifacts.PRECISIONS:
        for strategy in artifacts.STRATEGIES:
            hybrid = strategy.startswith("hybrid")
            group = "hybrid_shard" if hybrid and precision == "bf16" and world > 2 and mesh else "no_shard"

            def run():
                found = trained(precision, strategy)
                if strategy == group:
                    return "reference"
                try:
                    wanted = trained(precision, group)
                except Failed as error:
                    raise Failed(f"it trains, but {group} does not, whose bits it should have", error.output) from error
                if found != wanted:
                    raise Failed(f"losses or gradient norms are not those of {group}")
                return f"the bits of {group}"
            yield attempt(context, f"{strategy} {precision}, {world} rank(s)", run)


def strategies(context):
    """On one GPU, with and without CUDA graph."""
    yield from strategies_on(context, 1)

    def enqueued():
        plan = "gpt2-bf16-full_shard"
        runs = [numbers(train(context, plan, "cuda", "--deterministic=on", *graph)) for graph in ((), ("--cuda-graph=off",))]
        if runs[0] != runs[1]:
            raise Failed("--cuda-graph=off gives other bits")
        return "same bits with and without"
    yield attempt(context, "CUDA graph", enqueued)


def ranks(context):
    """On all GPUs, or two ranks on the only one, which NCCL 2.30 can."""
    world, env = context.devices, context.environment
    if world == 1:
        world, env = 2, {**env, "NCCL_MULTI_RANK_GPU_ENABLE": "1", "NCCL_MAX_CTAS": "4"}

    def against_cpu():
        plan = "gpt2-fp32-no_shard"
        try:
            rows = train(context, plan, "cuda", world=world, env=env)
        except Failed as error:
            if context.devices == 1 and re.search(r"NCCL|duplicate|libnccl", str(error) + error.output):
                raise Skipped(f"two ranks cannot share the only GPU: {error}") from error
            raise
        return check_fp32(rows, train(context, plan, "cpu", world=world))
    first = attempt(context, f"{world} ranks on {context.devices} GPU(s) against the CPU", against_cpu)
    yield first
    if first["result"] != "skipped":
        yield from strategies_on(context, world, env)


def memory(context):
    """What was announced is what is allocated."""
    for preset in artifacts.presets(context):
        def run():
            plan = f"{preset}-bf16-full_shard"
            announced, used = context.made.arena_bytes(plan), train(context, plan, "cuda", steps=1)[0]["arena_bytes"]
            if used != announced:
                raise Failed(f"arena of {used} bytes, {announced} were announced")
            return f"{used:,} bytes announced and used"
        yield attempt(context, f"arena of {preset}", run)


RANKS = (Part("ranks", run=1, seconds=120, rows=ranks, alone=True, plans=artifacts.plans_of_presets),)
PARTS = (
    Part("presets", run=1, seconds=150, rows=presets, plans=artifacts.plans_of_presets),
    Part("strategies", run=1, seconds=150, rows=strategies, plans=artifacts.plans_of_presets),
    Part("memory", run=1, seconds=100, rows=memory, plans=artifacts.plans_of_presets),
)
