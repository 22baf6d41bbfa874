"""A row of a CSV of published steps: what model it is, how `ftc` says it, and what was measured."""

import csv
import fnmatch
import math
import re

REQUIRED = ("id", "gpu", "n_gpus", "framework", "model", "layers", "hidden", "heads", "kv_heads", "ffn", "ffn_kind", "vocab", "seq",
            "micro_batch", "grad_accum", "dtype", "recompute", "strategy", "offload")
FAMILIES = {"gelu2": "gpt2", "relu2": "gpt2", "swiglu3": "llama", "geglu3": "llama"}  # of two or three matrices: costs are the same
NOT_STATED = ("", "-", "?", "n/a", "not stated", "unknown")

# What parts of the column say, in lower case; each is taken out, and nothing may stay. "fsdp" alone is full_shard.
STRATEGIES = ((r"zero-?1 \+ sharded weights", "full_shard"), (r"single[ -](gpu|device)", "no_shard"),
              (r"_?hybrid_shard_zero2", "hybrid_shard_zero2"), (r"hsdp|hybrid[_ -]shard", "hybrid_shard"),
              (r"no[_ -]shard\b", "no_shard"), (r"full[_ -]?shard\b", "full_shard"), (r"shard_grad_op", "shard_grad_op"),
              (r"\(?reshard_after_forward ?= ?false\)?", "shard_grad_op"), (r"fsdp[12]?\b|fully[ -]sharded data[ -]parallel", "fsdp"),
              (r"zero[ -]?(stage)?[ -]?1\b", "zero1"), (r"zero[ -]?(stage)?[ -]?2\b", "zero2"),
              (r"zero[ -]?(stage)?[ -]?3\b", "full_shard"),
              (r"ddp\b|(distributed )?data[ -]parallel(ism)?|replicated", "ddp"),
              (r"compiler-placed collectives|shardingstrategy|\b(deepspeed|pytorch|torch|simple)", None))

# What a column says as a whole.
# Of a plan all of a layer is computed again, or what lies between its products: MLPs whose products are computed again have no rule.
RECOMPUTATION = ((r"none|no|off|false", "none"), (r"minimal(_flash)?( \(only cheap/flash ops\))?|norms?", "ops:norms"),
                 (r"full( (layers?|\(all layers\)|recomputation|activation (recomputation|checkpointing)|ac))?", "full"))
# Residuals alone go beside computation, hidden.
OFFLOADED = ((r"none|no", None), (r"residuals?", None), (r"opt(imizer)?([ -](m|v|states?))?|master([ -]weights)?", "optimizer"),
             (r"activations?", "activations"), (r"params?|parameters?", "parameters"))
DTYPES = ((r"(mixed |amp )?(bf16|bfloat16)([ ,+/(-]+(amp|autocast|mixed|precision|fp32 master( weights)?)\)?)*", "bf16"),)
REDUCE_DTYPES = ((r"bf16|bfloat16", "bf16"), (r"fp32|float32", "fp32"), (r"fp16|float16", "fp16"))

# By name of the model: heads that need not be hidden / heads wide, and layers that FAMILIES has not (experts, windows, no causal mask).
OTHER_HEADS = re.compile(r"qwen3|gemma|nemo|mistral-?small|devstral")
OTHER_LAYERS = re.compile(r"moe|mixtral|\d+x\d+(\.\d+)?b|-a\d+(\.\d+)?b|deepseek|gpt-?oss|llama4|scout|maverick|dbrx|grok|kimi|arctic"
                          r"|minimax|glm-?4\.[5-9]|gemma[23](?!b)|qwen3-?(next|vl|omni)|mamba|jamba|bert|\bt5|\bvit|\bdit")


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


def model_name(row):
    """As "llama3.2-1b": in lower case, without an owner, the version beside the name."""
    return re.sub(r"^([a-z]+)[-_ ](?=\d)", r"\1", row["model"].strip().lower().rpartition("/")[2])


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
    if not stated(row, "head_size"):
        if OTHER_HEADS.search(name):
            raise NotExpressed(f"model '{row['model']}' has heads of a size of its own, and no column head_size states it")
        return of_ffn, []
    head = number(row, "head_size")
    if of_ffn == "llama" and name.startswith("qwen3"):
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


def strategy(row):
    rest, ranks, found = stated(row, "strategy"), number(row, "n_gpus"), set()
    for pattern, meaning in STRATEGIES:
        rest, times = re.subn(pattern, "", rest)
        found |= {meaning} if times and meaning else set()
    kinds = found - {"fsdp"} or {"full_shard"}
    unclear = not found or len(kinds) > 1 or re.search(r"\w", rest) or ("fsdp" in found and kinds & {"ddp", "zero1"})
    if unclear or (ranks > 1 and "single" in stated(row, "strategy")):
        raise NotExpressed(f"strategy '{row['strategy']}' on {ranks} GPUs")
    return "no_shard" if ranks == 1 else kinds.pop()


def recomputation(row, assumptions):
    """As the machine file says of the column's words ("recompute_selective"), else as the table does."""
    words = re.sub(r"\W+", "_", stated(row, "recompute") or "not stated").strip("_")
    known = assumptions.get(f"recompute_{words}") or (words == "not_stated" and "none")
    return known or whole(RECOMPUTATION, row, "recompute")


def offload(row):
    """A list of which each item is known."""
    items = re.split(r" ?[+,;&] ?| and ", stated(row, "offload") or "none")
    moved = [whole(OFFLOADED, {"offload": item}, "offload") for item in items]
    if len(items) > 1 and ("none" in items or "no" in items):
        raise NotExpressed(f"offload '{row['offload']}'")
    return ",".join(dict.fromkeys(what for what in moved if what)) or "none"


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
    dtype = whole(DTYPES, row, "dtype")
    reduce_dtype = whole(REDUCE_DTYPES, row, "reduce_dtype") if stated(row, "reduce_dtype") else assumptions.get("reduce_dtype", "fp32")
    micro_steps = 1 if reduces_often(row, assumptions) else number(row, "grad_accum")
    options = [f"--strategy={strategy(row)}", f"--param-dtype={dtype}", f"--reduce-dtype={reduce_dtype}",
               f"--micro-steps={micro_steps}", f"--remat={recomputation(row, assumptions)}",
               f"--offload={offload(row)}", f"--world-size={number(row, 'n_gpus')}", "--code=none"]
    if assumptions.get("state") == "bf16":
        options.append("--master-weights=off")
    options += assumptions.get("options", "").split()
    return options
