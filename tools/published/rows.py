"""A row of a CSV of published steps: what model it is, how `ftc` says it, and what was measured."""

import csv
import fnmatch
import math
import re

import words

REQUIRED = ("id", "gpu", "n_gpus", "framework", "model", "layers", "hidden", "heads", "kv_heads", "ffn", "ffn_kind", "vocab", "seq",
            "micro_batch", "grad_accum", "dtype", "recompute", "strategy", "offload")
FAMILIES = {"gelu2": "gpt2", "relu2": "gpt2", "swiglu3": "llama", "geglu3": "llama"}  # of two or three matrices: costs are the same
NOT_STATED = ("", "-", "?", "n/a", "not stated", "unknown")

REDUCE_DTYPES = ((r"bf16|bfloat16", "bf16"), (r"fp32|float32", "fp32"), (r"fp16|float16", "fp16"))

# By name of the model: heads that need not be hidden / heads wide, and layers that FAMILIES has not (experts, windows, no causal mask).
OTHER_HEADS = re.compile(r".gemma|gemma(?!(1\.1)?-?2b)|mistral-?nemo|\bnemo-?12b|mistral-?small|devstral")
OTHER_LAYERS = re.compile(r"moe|mixtral|\d+x\d+(\.\d+)?b|-a\d+(\.\d+)?b|gpt-?oss|llama4|scout|maverick|dbrx|grok|kimi|arctic|minimax"
                          r"|deepseek-?(v[23]|moe|r1(?!-distill)|coder-?v2|prover-?v2|vl|16b|236b|671b|$)|glm-?4\.[5-9]|vision|-vl\b"
                          r"|gemma[23](?!b)|recurrentgemma|qwen3-?(next|vl|omni|coder|30b|235b)|qwen3\."
                          r"|nemotron.*(super|ultra|nano-(9|12|30)b)|nemotron-?h\b|mamba|jamba|bert|\bt5|\bvit|\bdit")


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


def stated(row, column):
    """The column in lower case, "" where the row does not say."""
    text = " ".join((row.get(column) or "").lower().split())
    return "" if text in NOT_STATED else text


def whole(table, row, column):
    """What the table says of all of the column."""
    for pattern, meaning in table:
        if re.fullmatch(pattern, stated(row, column)):
            return meaning
    raise NotExpressed(f"{column} '{row.get(column) or ''}'")


def read(path):
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            missing = [column for column in REQUIRED if column not in (reader.fieldnames or ())]
            if missing:
                raise ValueError(f"{path}: no column {', '.join(missing)}")
            rows = list(reader)
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: no CSV in UTF-8: {error}") from error
    for number_of_row, row in enumerate(rows, 1):
        if None in row or None in row.values():
            difference = "more" if None in row else "fewer"
            raise ValueError(f"{path}: row {number_of_row} ({row['id']}) has {difference} fields than the head has columns")
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
    return min(number(row, "n_gpus"), number(row, "gpus_per_node")) if stated(row, "gpus_per_node") else int(machine["ranks_per_node"])


def size(row):
    """Elements of its matrices: what orders models."""
    hidden, heads = number(row, "hidden"), number(row, "heads")
    wide = hidden + 2 * hidden * number(row, "kv_heads") // heads
    mlp = (3 if FAMILIES.get(row["ffn_kind"]) == "llama" else 2) * number(row, "ffn")
    return number(row, "layers") * hidden * (wide + hidden + mlp) + number(row, "vocab") * hidden


NAMES = ((r"[\s_:-]+", "-"), (r"^meta-(?=llama)", ""), (r"(-(instruct|chat|base|it|hf))+$", ""), (r"^([a-z]+)-(?=\d)", r"\1"),
         (r"^(llama3(?=-[123]-\d)|qwen2(?=-5-\d))-", r"\1."), (r"^(qwen.*-[01])[-p](\db)$", r"\1.\2"))


def model_name(row):
    """As "llama3.2-1b": in lower case, without an owner and what it was trained for, the version beside the name."""
    name = row["model"].strip().lower().rpartition("/")[2]
    for pattern, plain in NAMES:
        name = re.sub(pattern, plain, name)
    return name


def is_tied(row, assumptions):
    names = [name.strip().lower() for name in assumptions.get("tied_head", "").split(",")]
    return any(fnmatch.fnmatchcase(model_name(row), name) for name in names)


def family(row):
    """As `ftc model` calls it, with the options that only some families have."""
    name, of_ffn = model_name(row), FAMILIES.get(row["ffn_kind"])
    if of_ffn is None:
        raise NotExpressed(f"ffn_kind '{row['ffn_kind']}'")
    if OTHER_LAYERS.search(name):
        raise NotExpressed(f"model '{row['model']}' has layers of another kind")
    is_qwen3 = of_ffn == "llama" and name.startswith("qwen3")
    if not stated(row, "head_size") and not is_qwen3:
        if OTHER_HEADS.search(name):
            raise NotExpressed(f"model '{row['model']}' has heads of a size of its own, and no column head_size states it")
        return of_ffn, []
    head = number(row, "head_size") if stated(row, "head_size") else 128  # as all dense ones have
    if is_qwen3:
        return "qwen3", [f"--head-size={head}"]
    if head * number(row, "heads") != number(row, "hidden"):
        raise NotExpressed(f"head_size is {head}, not hidden / heads")
    return of_ffn, []


PRESETS = {"llama": ("llama2-7b", "qwen2.5-1.5b"), "qwen3": ("8b", "0.6b")}  # with a head of its own, and with a tied one


def model_options(row, assumptions):
    name, options = family(row)
    options = [name, *options]
    if name in PRESETS:
        options += [f"--preset={PRESETS[name][is_tied(row, assumptions)]}", f"--kv-heads={number(row, 'kv_heads')}"]
    elif number(row, "kv_heads") != number(row, "heads"):
        raise NotExpressed("two matrices in the MLP and fewer heads of keys and values")
    options += [f"--batch={number(row, 'micro_batch')}", f"--seq={number(row, 'seq')}", f"--context={number(row, 'seq')}"]
    options += [f"--{name}={number(row, name)}" for name in ("layers", "hidden", "heads", "ffn", "vocab")]
    return options


def understood(meaning, row, column, beside=""):
    """What words.py makes of the column."""
    if meaning is None:
        raise NotExpressed(f"{column} '{row.get(column) or ''}'{beside}")
    return meaning


def recomputation(row, assumptions):
    """As the machine file says of the column's words ("recompute_selective"), else as the column does."""
    text = stated(row, "recompute") or "not stated"
    key = re.sub(r"\W+", "_", text).strip("_")
    known = assumptions.get(f"recompute_{key}") or (key == "not_stated" and "none")
    return known or understood(words.recomputation(text, assumptions.get("recompute_selective")), row, "recompute")


def offload(row):
    return understood(words.offload(stated(row, "offload") or "none"), row, "offload")


def strategy(row, machine):
    """What other columns state may be named in it, too."""
    ranks, elsewhere = number(row, "n_gpus"), []
    if recomputation(row, machine.get("assumptions", {})) == "none":
        elsewhere.append((rf"\b(no|without) ({words.CHECKPOINTING})", None))
    else:
        kind = re.match(r"full|selective", stated(row, "recompute"))
        elsewhere.append((rf"({kind[0]} )?({words.CHECKPOINTING})" if kind else words.CHECKPOINTING, None))
    elsewhere.append((r"\bno (cpu )?offload(ing)?\b" if offload(row) == "none" else r"\b(cpu )?offload(ing)?\b", None))
    if words.compiled(stated(row, "compile")) == "yes":
        elsewhere.append((rf"(?<!no )\b{words.COMPILER}\b(?!-placed)", None))
    meaning = words.strategy(stated(row, "strategy"), ranks, min(ranks, ranks_on_node(row, machine)), elsewhere)
    return understood(meaning, row, "strategy", f" on {ranks} GPUs")


def reduces_often(row, assumptions):
    """Whether gradients are reduced in each of several micro-steps, beside the backward pass: as in so many steps of one."""
    return assumptions.get("reduce") == "every_micro_step" and number(row, "n_gpus") > 1


def step_seconds(row, assumptions, step):
    """Of what ftc explain --json says of the row's plan."""
    if not reduces_often(row, assumptions):
        return step["seconds"]
    times = number(row, "grad_accum")
    return times * step["seconds"] - (times - 1) * step["phase_seconds"]["optimizer"]


def dtype_options(row, assumptions):
    """Types that the column dtype states beside bf16 go before those that the machine file assumes."""
    said = understood(words.dtypes(stated(row, "dtype")), row, "dtype")
    reduced = next((word.split()[1] for word in said if word.startswith("reduce ")), "")
    if stated(row, "reduce_dtype"):
        if reduced not in ("", whole(REDUCE_DTYPES, row, "reduce_dtype")):
            raise NotExpressed(f"dtype '{row['dtype']}' and reduce_dtype '{row['reduce_dtype']}'")
        reduced = whole(REDUCE_DTYPES, row, "reduce_dtype")
    reduced = reduced or ("bf16" if "true" in said else assumptions.get("reduce_dtype", "fp32"))
    is_bf16 = "true" in said or (assumptions.get("state") == "bf16" and "master" not in said)
    return ["--param-dtype=bf16", f"--reduce-dtype={reduced}", *(["--master-weights=off"] if is_bf16 else [])]


def compile_options(row, machine):
    assumptions = machine.get("assumptions", {})
    param, reduced, *states = dtype_options(row, assumptions)
    micro_steps = 1 if reduces_often(row, assumptions) else number(row, "grad_accum")
    options = [f"--strategy={strategy(row, machine)}", param, reduced, f"--micro-steps={micro_steps}",
               f"--remat={recomputation(row, assumptions)}", f"--offload={offload(row)}", f"--world-size={number(row, 'n_gpus')}",
               "--code=none", *states]
    return options + assumptions.get("options", "").split()
