"""A row of a CSV of published steps: what model it is, how `ftc` says it, and what was measured."""

import csv
import fnmatch
import math
import re

REQUIRED = ("id", "gpu", "n_gpus", "framework", "model", "layers", "hidden", "heads", "kv_heads", "ffn", "ffn_kind", "vocab", "seq",
            "micro_batch", "grad_accum", "dtype", "recompute", "strategy", "offload")
FAMILIES = {"gelu2": "gpt2", "relu2": "gpt2", "swiglu3": "llama", "geglu3": "llama"}  # of two or three matrices: costs are the same
# The first word that a row's column has says what it means; in lower case.
STRATEGIES = (("single gpu", "no_shard"), ("sharded weights", "full_shard"), ("hsdp", "hybrid_shard"), ("hybrid", "hybrid_shard"),
              ("shard_grad_op", "shard_grad_op"), ("zero-1", "zero1"), ("zero1", "zero1"), ("zero-2", "zero2"), ("zero2", "zero2"),
              ("zero-3", "full_shard"), ("zero3", "full_shard"), ("fsdp", "full_shard"), ("full-shard", "full_shard"),
              ("ddp", "ddp"), ("data parallel", "ddp"), ("replicated", "ddp"))
OTHER_AXES = ("tensor", "pipeline", "context", "expert", "sequence p", " tp", "tp=", " pp", "pp=", " cp", "cp=", " ep", "ep=")
# Of a plan all of a layer is computed again, or what lies between its products: MLPs whose products are computed again have no rule.
RECOMPUTATION = (("none", "none"), ("no", "none"), ("minimal", "ops:norms"), ("norm", "ops:norms"), ("full", "full"))


class NotExpressed(Exception):
    """Why there is no plan for the row."""


def positive(row, column):
    try:
        value = float(row[column])
    except (TypeError, ValueError) as error:
        raise NotExpressed(f"{column} is '{row[column]}'") from error
    if not 0 < value < math.inf:
        raise NotExpressed(f"{column} is {row[column]}")
    return value


def number(row, column):
    value = positive(row, column)
    if value != int(value):
        raise NotExpressed(f"{column} is {row[column]}, no whole number")
    return int(value)


def first_of(table, text, column):
    for word, meaning in table:
        if word in text.lower():
            return meaning
    raise NotExpressed(f"{column} '{text}'")


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        missing = [column for column in REQUIRED if column not in (reader.fieldnames or ())]
        if missing:
            raise ValueError(f"{path}: no column {', '.join(missing)}")
        rows = list(reader)
    for number_of_row, row in enumerate(rows, 1):
        if None in row or None in row.values():
            raise ValueError(f"{path}: row {number_of_row} ({row['id']}) has {'more' if None in row else 'fewer'} fields than the head has columns")
    return rows


def stack(row):
    return f"{row['framework']} on {row['gpu']}"


def measured_seconds(row):
    """Of a step. Nothing in the row but its own time: no column that was derived from it."""
    if row.get("step_ms"):
        return positive(row, "step_ms") * 1e-3
    if row.get("tokens_per_s_per_gpu"):
        return number(row, "micro_batch") * number(row, "seq") * number(row, "grad_accum") / positive(row, "tokens_per_s_per_gpu")
    raise NotExpressed("neither step_ms nor tokens_per_s_per_gpu is stated")


def ranks_on_node(row, machine):
    """What the row states, else what the machine file does."""
    stated = row.get("gpus_per_node") or ""
    return number(row, "gpus_per_node") if stated.isdigit() and number(row, "n_gpus") > int(stated) > 0 else int(machine["ranks_per_node"])


def size(row):
    """Elements of its matrices: what orders models."""
    hidden, heads = number(row, "hidden"), number(row, "heads")
    wide = hidden + 2 * hidden * number(row, "kv_heads") // heads
    mlp = (3 if FAMILIES.get(row["ffn_kind"]) == "llama" else 2) * number(row, "ffn")
    return number(row, "layers") * hidden * (wide + hidden + mlp) + number(row, "vocab") * hidden


def is_tied(row, assumptions):
    names = [name.strip() for name in assumptions.get("tied_head", "").split(",")]
    return any(fnmatch.fnmatch(row["model"], name) for name in names)


def model_options(row, assumptions):
    if row["ffn_kind"] not in FAMILIES:
        raise NotExpressed(f"ffn_kind '{row['ffn_kind']}'")
    family = FAMILIES[row["ffn_kind"]]
    options = [family]
    if family == "llama":
        options.append("--preset=" + ("qwen2.5-1.5b" if is_tied(row, assumptions) else "llama2-7b"))
        options.append(f"--kv-heads={number(row, 'kv_heads')}")
    elif number(row, "kv_heads") != number(row, "heads"):
        raise NotExpressed("two matrices in the MLP and fewer heads of keys and values")
    options += [f"--batch={number(row, 'micro_batch')}", f"--seq={number(row, 'seq')}", f"--context={number(row, 'seq')}"]
    options += [f"--{name}={number(row, name)}" for name in ("layers", "hidden", "heads", "ffn", "vocab")]
    return options


def strategy(row):
    if any(word in f" {row['strategy'].lower()}" for word in OTHER_AXES):
        raise NotExpressed(f"strategy '{row['strategy']}'")
    chosen = first_of(STRATEGIES, row["strategy"], "strategy")
    return "no_shard" if number(row, "n_gpus") == 1 else chosen


def recomputation(row, assumptions):
    """By its first word, as the machine file says ("recompute_selective"), else as the table does."""
    text = (row["recompute"] or "not stated").lower()
    word = "not_stated" if "not stated" in text else re.split(r"[^a-z_+]", text)[0]
    stated = assumptions.get(f"recompute_{word}")
    if stated or word == "not_stated":
        return stated or "none"
    for known, meaning in RECOMPUTATION:
        if word == known or word.startswith(known + "_"):
            return meaning
    raise NotExpressed(f"recompute '{row['recompute']}'")


def offload(row):
    text, moved = row["offload"].lower(), []
    if text in ("", "none", "-", "no"):
        return "none"
    if "opt" in text or "master" in text:
        moved.append("optimizer")
    if "activation" in text:
        moved.append("activations")
    if not moved and "residual" not in text:
        raise NotExpressed(f"offload '{row['offload']}'")
    return ",".join(moved) or "none"  # residuals alone go beside computation, hidden


def reduces_often(row, assumptions):
    """Whether gradients are reduced in each of several micro-steps, beside the backward pass: as in so many steps of one."""
    return assumptions.get("reduce") == "every_micro_step" and number(row, "n_gpus") > 1


def step_seconds(row, assumptions, step):
    """Of what ftc explain --json says of the row's plan."""
    if not reduces_often(row, assumptions):
        return step["seconds"]
    times = number(row, "grad_accum")
    return times * step["seconds"] - (times - 1) * step["phase_seconds"]["optimizer"]


def compile_options(row, assumptions):
    if "bf16" not in row["dtype"] or re.search(r"(fp|float|int|mxfp|nvfp)[48]", row["dtype"].lower()):
        raise NotExpressed(f"dtype '{row['dtype']}'")
    reduce_dtype = row.get("reduce_dtype") or assumptions.get("reduce_dtype", "fp32")
    micro_steps = 1 if reduces_often(row, assumptions) else number(row, "grad_accum")
    options = [f"--strategy={strategy(row)}", "--param-dtype=bf16", f"--reduce-dtype={reduce_dtype}",
               f"--micro-steps={micro_steps}", f"--remat={recomputation(row, assumptions)}",
               f"--offload={offload(row)}", f"--world-size={number(row, 'n_gpus')}", "--code=none"]
    if assumptions.get("state") == "bf16":
        options.append("--master-weights=off")
    options += assumptions.get("options", "").split()
    return options
