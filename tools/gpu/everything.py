"""One plan with everything that a plan can have, and one that no GPU has the memory for."""
import json
import sys

from part import Part
from runner import Failed, Skipped, attempt, execute, read_json_lines

# fp16 whose first scale is too large and doubles every two steps: steps are skipped, the scale moves in both directions.
MODEL = ("gpt2", "--dropout=0.1", "--batch=1", "--seq=32")
PLAIN = ("--strategy=full_shard", "--mixed-precision=fp16", "--initial-scale-power=18", "--loss-scale-window=2",
         "--micro-steps=4")
EVERYTHING = (*PLAIN, "--offload=optimizer,parameters,activations", "--remat=every_n:1")
# The host updates, while a recorded step runs.
HOST_STEP = (*PLAIN, "--offload=optimizer:step")
STEPS = 8
# Its parameters, gradients and optimizer state alone take more than a terabyte.
TOO_LARGE = ("gpt2", "--layers=16", "--hidden=32768", "--heads=256")


def plans():
    return {"everything": (MODEL, EVERYTHING), "everything-plain": (MODEL, PLAIN), "everything-step": (MODEL, HOST_STEP),
            "too-large": (TOO_LARGE, ("--strategy=no_shard",))}


def train(context, plan, *options):
    """What must be equal of two runs: of every step, and the weights at the end."""
    out, weights = context.file(".jsonl"), context.file(".safetensors")
    execute(context, [context.ftexec, context.made.plan(plan), f"--data={context.text}", f"--steps={STEPS}", "--device=cuda",
                      "--deterministic=on", f"--metrics={out}", f"--save-weights={weights}", "--progress=off", *options,
                      *context.options], limit=200)
    rows = read_json_lines(out)
    if len(rows) != STEPS:
        raise Failed(f"{len(rows)} steps in the metrics, expected {STEPS}")
    return [tuple(row.get(key) for key in ("loss", "grad_norm", "loss_scale", "skipped")) for row in rows], weights.read_bytes()


def check_trace(path):
    """That it is one, with copies in both directions beside what computes."""
    events = json.loads(path.read_text())["traceEvents"]
    tracks = {event["args"]["name"] for event in events if event.get("name") == "thread_name"}
    missing = [name for name in ("compute", "h2d", "d2h") if not any(name in track for track in tracks)]
    if missing:
        raise Failed(f"the trace has no track {missing[0]}, only {', '.join(sorted(tracks))}")
    return sum(event.get("ph") == "X" for event in events)


def everything(context):
    def same_bits():
        trace = context.file(".json")
        runs = (("", train(context, "everything", f"--trace={trace}", "--trace-steps=2")),
                (" with updates on the host", train(context, "everything-step")))
        (expected, expected_weights) = train(context, "everything-plain")
        for where, (steps, weights) in runs:
            for number, (step, other) in enumerate(zip(steps, expected)):
                if step != other:
                    raise Failed(f"step {number}: loss, norm, scale and skipped{where} are {step}, without offload and recomputation {other}")
            if weights != expected_weights:
                raise Failed(f"weights differ{where} from those without offload and recomputation")
        skipped = sum(bool(step[3]) for step in expected)
        if not 0 < skipped < STEPS:
            raise Failed(f"{skipped} of {STEPS} steps were skipped: the loss scale was not tried")
        return (f"{STEPS} steps, {skipped} of them skipped, and all weights have the same bits; "
                f"{check_trace(trace)} commands in the trace")
    yield attempt(context, "offload of all three, 4 micro-steps, recomputation, fp16 with scaling, dropout, --trace", same_bits)

    def too_large():
        plan, there = context.made.plan("too-large"), min(gpu["bytes"] for gpu in context.gpus)
        wanted = context.made.arena_bytes("too-large")
        if wanted <= there:
            raise Skipped(f"this GPU's {there:,} bytes hold the {wanted:,} of the largest plan here")
        return refused(context, plan, wanted)
    yield attempt(context, "an arena larger than the device is refused in one line", too_large)


# Runs a command with its standard error in a file.
ASIDE = "import os, sys; os.dup2(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT, 0o600), 2); os.execv(sys.argv[2], sys.argv[2:])"


def refused(context, plan, wanted):
    """The line on standard error of a run that finds too little memory."""
    said = context.file(".stderr")
    command = [context.ftexec, plan, f"--data={context.text}", "--steps=1", "--device=cuda", "--progress=off", *context.options]
    status, output = 0, ""
    try:
        execute(context, [sys.executable, "-c", ASIDE, said, *command], limit=60)  # where a bundle runs there may be no shell
    except Failed as error:
        status, output = error.status, error.output
    lines = said.read_text(errors="replace").strip().splitlines()
    if status != 74 or len(lines) != 1 or str(wanted) not in lines[0]:
        raise Failed(f"status {status} and {len(lines)} lines instead of 74 and one with {wanted} bytes",
                     "\n".join([output, *lines[-20:]]))
    return lines[0]


PARTS = (Part("everything", run=1, seconds=200, rows=everything, plans=plans),)
