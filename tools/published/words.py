"""What texts of a row say of its strategy, types, recomputation and offload: known phrases are taken out, and nothing may stay.

Each table has regular expressions of phrases in lower case, "_" read as a space, in the order in which they are taken out, with what each
says; None: nothing that a plan asks. A text with a word that no table knows is refused by its caller, and so are two that do not agree.
"""

import re

# Meshes of two axes: ranks that have the same, and ranks among which it is divided; "8x8" where it is called hybrid.
OF = r"(?:[ -](?:degree|size|group|dim))*[ =:]*(\d+)(?!\d|[ -]?way|\s?(?:replica|shard))"
AXES = (("replicas", rf"(?:\b(?:data parallel|dp|ddp) )?\breplica(?:te|tion|ted|s)?{OF}"),
        ("shards", rf"(?<!full[ -])(?<!fully[ -])(?<!hybrid[ -])(?<!no[ -])(?:\b(?:data parallel|dp|fsdp) )?\bshard(?:s|ed|ing)?{OF}"),
        ("replicas", r"\b(\d+)(?:-way replica(?:te|tion|ted)?| replicas)\b"), ("shards", r"\b(\d+)(?:-way shard(?:ed|ing)?| shards)\b"))
HYBRID = r"\bhsdp[12]?\b|\bhybrid[ -](fsdp[12]?\b|shard(ed|ing)?\b( data[ -]parallel(ism)?)?)"
GRID = r"\(?\b(\d+) ?[x×*] ?(\d+)\b\)?"

OTHER_AXES = r"(tp|pp|cp|sp|ep|(tensor|pipeline|context|sequence|expert) parallel(ism)?)"
# "fsdp" alone is full_shard.
STRATEGIES = (
    (r"zero-?1 \+ sharded weights", "full_shard"), (r"\b(single|one|1)[ -]?(gpu|device)\b", "single"),
    (r"\bhybrid[ -]shard[ -]zero-?2", "hybrid_shard_zero2"), (HYBRID, "hybrid_shard"),
    (r"\bno[ -]shard\b", "no_shard"), (r"\bfull[ -]?shard(ing|ed)?\b", "full_shard"), (r"\b(shard[ -]?)?grad[ -]?op\b", "shard_grad_op"),
    (r"\b(fsdp )?reshard after forward ?[=:]? ?(false|no|off|never)\b|\bno reshard(ing)?( after forward)?\b", "shard_grad_op"),
    (r"\b(fsdp )?reshard after forward ?[=:]? ?(true|yes|on|always|default)\b", "full_shard"),
    (r"\bfsdp[12]?[ (-]+full\b", "full_shard"),
    (r"\bfsdp([ -]?v?[12])?\b|simplefsdp\b|\bfully[ -]shard(ed)?\b( data[ -]parallel(ism)?)?", "fsdp"),
    (r"\b(ddp|dp|data[ -]parallel(ism)?) ?[+,] ?(?=zero|distributed opt)", None),
    *((rf"\b(zero|stage)([ (-]*stage)?[ =:(-]*{stage}\b", meaning)
      for stage, meaning in ((1, "zero1"), (2, "zero2"), (3, "zero3"))),
    (r"\bdistributed optimizer\b|\bzero ?redundancy ?optimizer\b", "zero1"),
    (r"\bddp\b|\b(distributed )?data[ -]parallel(ism)?\b|\breplicated\b", "ddp"),
    (rf"\b{OTHER_AXES} ?(size|degree)?[ =:]*1\b|\bno {OTHER_AXES}((/|, | or | and )(no )?{OTHER_AXES})*\b", None),
    (r"\blimit all gathers( ?= ?(true|on))?\b|\b((backward|forward) )?prefetch(ing)?( ?= ?(backward )?pre)?\b", None),
    (r"\buse orig params( ?= ?true)?\b|\bper[ -]param(eter)?\b|\bauto[ -]?wrap\b", None),
    (r"\b(per|by|each)[ -](transformer )?(layer|block)\b|\bwrap(ped|ping)?\b|\btransformer ?(block|layer)s?\b", None),
    (r"\b(compiler-placed collectives|sharding ?strategy|1-?d|dtensor|pure|only|plain|native|simple|g?spmd|(open)?xla|jax)\b", None),
    (r"\b(deepspeed|pytorch|torch|accelerate|trainer|hf|hugging ?face|transformers|lightning|megatron(-(lm|core))?|mcore|composer"
     r"|torchtitan)\b", None),
    (r"\bbf16( mixed)?( precision)?\b|\bmixed precision\b", None))  # as the column dtype says
ALONE = ((r"\b((no |non-?|not )(shard(ing|ed)?|parallel(ism)?|distributed)|none|no|dp|local|single|one|unsharded|baseline)\b", None),)
# What is said by several words together; otherwise by one.
TOGETHER = {frozenset(("fsdp", "zero2")): "shard_grad_op", frozenset(("fsdp", "no_shard")): "no_shard",
            **{frozenset((one, two)): meaning for one, two, meaning in (
                ("fsdp", "full_shard", "full_shard"), ("fsdp", "zero3", "full_shard"), ("fsdp", "shard_grad_op", "shard_grad_op"),
                ("full_shard", "zero3", "full_shard"), ("fsdp", "hybrid_shard", "hybrid_shard"),
                ("hybrid_shard", "full_shard", "hybrid_shard"), ("hybrid_shard", "shard_grad_op", "hybrid_shard_zero2"),
                ("hybrid_shard", "hybrid_shard_zero2", "hybrid_shard_zero2"), ("fsdp", "hybrid_shard_zero2", "hybrid_shard_zero2"),
                ("shard_grad_op", "zero2", "shard_grad_op"), ("ddp", "zero1", "zero1"))},
            frozenset(("fsdp", "full_shard", "zero3")): "full_shard", frozenset(("fsdp", "shard_grad_op", "zero2")): "shard_grad_op",
            frozenset(("fsdp",)): "full_shard", frozenset(("zero3",)): "full_shard"}

# Of a plan all of a layer is computed again, or what lies between its products: MLPs whose products are computed again have no rule.
CHECKPOINTING = r"\b((gradient|activation|act)s? )?(checkpoint(ing|s)?|ckpt|recomput(e|ation))\b|\bremat(erialization)?\b|\bac\b"
RECOMPUTATION = (
    (r"\bonly cheap/flash ops\b|\btorch\.utils\.checkpoint\b"
     r"|\buse reentrant( ?= ?(true|false))?\b|\b(hf|torch|pytorch)\b|\bfits\b", None),
    (r"\b(none|no|off|false|disabled|without)\b( needed\b)?|\bnot (needed|used)\b", "none"),
    (r"\bminimal( flash)?\b|^norms?$", "ops:norms"),
    (r"\b(per|all|every|each|whole)( (the|transformer|decoder))* ?(layers?|blocks?)\b"
     r"|\b(?P<n>\d+) ?(of|/) ?(?P=n) (layers|blocks)\b", "layers"),
    (r"\b(full|yes|on|true|enabled)\b( layers?\b)?", "full"),
    (r"\b(gradient|activation) (checkpointing|ckpt)\b|^ac$", "layers"), (CHECKPOINTING, None))

EVERY = r"selective\W+(?:ac\W+|activation checkpointing\W+)?every (?:(\d+)(?:nd|rd|th)?|other|second) (?:layers?|blocks?)\W*"

# Residuals alone go beside computation, hidden.
OFFLOADED = ((r"\b(none|no|off|false|disabled)\b( needed\b)?|\bnot needed\b", "none"), (r"\bresiduals?\b", "residuals"),
             (r"(?<!optimizer )(?<!opt )\bparam(eter)?s?\b", "parameters"),
             (r"\b(opt(im(izer)?)?|adamw?)\b([ -](m|v|states?|moments?)\b)?|\bmaster\b([ -]weights)?", "optimizer"),
             (r"\bact(ivation)?s?\b", "activations"),
             (r"\b(to |on |in )?(the )?(cpu|host)( (memory|ram))?\b|\boffload(ing|ed)?\b|\band\b", None))

F32, BF16 = r"(?:fp32|float32|f32)", r"(?:bf16|bfloat16)"
GRADIENTS = r"grad(?:ient)?s?"
REDUCED = rf"(?:{GRADIENTS} (?:accum(?:ulat(?:e|ion))?|reduc(?:e|tion))|reduce[ -]?scatter|(?:all[ -]?)?reduc(?:e|tion)s?|{GRADIENTS})"
DTYPES = (
    (rf"\b(no|without)( {F32})? master\b([ -](weights?|copy|copies))*", "true"),
    (rf"\b{F32}[ -](master|main|opt(imizer)?)\b([ +-](weights?|params?|parameters|copy|copies|states?|moments?))*", "master"),
    (rf"\b(master|main)([ -](weights?|params?|parameters|copy|copies))*( in|:|=)? ?{F32}\b", "master"),
    (rf"\b{F32}[ -](params?|parameters|weights)\b", "master"),
    *((rf"\b{kind}[ (-]+{REDUCED}\b|\b{REDUCED}( in|:|=)? ?{kind}\b", f"reduce {name}") for kind, name in ((F32, "fp32"), (BF16, "bf16"))),
    (rf"\b{BF16}[ -]true\b|\b(pure|full|all)[ -]{BF16}\b|\b{BF16}[ -]only\b", "true"),
    (rf"\b{BF16} ?/ ?{F32}\b|\b{F32} ?/ ?{BF16}\b", "bf16"), (rf"\b{BF16}\b", "bf16"),
    (r"\b(no|without) (fp8|float8)\b", None),
    (r"\b(amp|autocast|(auto(matic)? )?mixed([ -]precision)?|precision|fsdp[12]?|mp|torch|pytorch|native)\b", None),
    (r"\b(params?|parameters|weights|activations?|compute|forward|backward|training|with|and|in)\b|\bw/", None),
    (r"\b(deepspeed|accelerate|hf|composer|lightning)\b", None))

# Whether what launches is compiled.
COMPILER = r"(?:torch[. ]?compiled?|compil(?:e[dr]?|ation|ing)|(?:torch-?)?inductor|(?:torch-?)?dynamo)"
OFF = r"(?:(?:off|false|disabled|not used)\b|(?:no|none|n|0)\b(?! ?\w))"
NOT_COMPILED = rf"\b(?:no|not|without|non-?) ?{COMPILER}\b|\b{COMPILER} ?(?:was |is )?[=:(]* ?{OFF}"
NO = r"(no(?! (cuda|graph|full))|none|off|false|eager|disabled|n|0)\b(?!/)"
YES = r"(yes|y|1|on|true|enabled|max-autotune|reduce-overhead)\b"
OTHER_COMPILERS = r"(open)?xla\b|(jax\.)?jit\b|thunder\b|nvfuser\b|(hand-?written|fused) (cuda )?kernels\b"
UNCLEAR = (r"\b(only|part|partly|partial|partially|some|except|but|maybe|perhaps|probably|likely|presumed|assumed|optional"
           r"|(un)?known|info|information|mention|mentioned|stated|reported|unclear)\b")


def take(text, *tables):
    """What the phrases of the tables that the text has say, and the words that are left of it."""
    found, text = set(), text.replace("_", " ")
    for table in tables:
        for pattern, meaning in table:
            text, times = re.subn(pattern, " | ", text)
            found |= {meaning} if times and meaning else set()
    return found, re.findall(r"\w+|\+\+", text)


def agreed(found):
    return TOGETHER.get(frozenset(found)) or (next(iter(found)) if len(found) == 1 else None)


def _sizes(text):
    """Sizes of the axes that a strategy names, and the text without them."""
    sizes = {}
    for axis, pattern in AXES:
        size = None if axis in sizes else re.search(pattern, text)
        if size:
            sizes[axis], text = int(size[1]), text[:size.start()] + "|" + text[size.end():]
    grid = re.search(GRID, text) if not sizes and re.search(HYBRID, text) else None
    if grid:
        sizes, text = {"replicas": int(grid[1]), "shards": int(grid[2])}, text[:grid.start()] + "|" + text[grid.end():]
    return sizes, text


def _of_all(ranks, on_node):
    """Phrases that say how many ranks there are."""
    gpus = r"(gpus?|ranks?|devices?|way|(nvidia )?[abh][12]00s?)\b"
    count = ranks // on_node if ranks % on_node == 0 else "one"
    nodes = rf"|\b(on |over |across )?({count}{'|(a )?single|one' if ranks <= on_node else ''}) nodes?( (x|of) {on_node}( gpus?)?)?\b"
    return ((rf"\b(on |over |across )?{ranks}[ -]?(x ?)?{gpus}{nodes}", None),
            (rf"\bfsdp([12](?!\d))?[ =:x×(-]*{ranks}\b", "fsdp"), (rf"\bfull[ -]?shard[ =:x×(-]*{ranks}\b", "full_shard"),
            (rf"\bddp[ =:x×(-]*{ranks}\b", "ddp"), (rf"\b(dp|data parallel|world|mesh)( size| degree)?[ =:x×(-]*{ranks}\b", None))


def _with_sizes(kind, sizes, ranks, on_node):
    """The strategy of this kind over these axes, None where it is another. The shards of a hybrid one are a node's ranks."""
    replicas = sizes.get("replicas") or ranks // sizes["shards"]
    shards = sizes.get("shards") or ranks // replicas
    if replicas * shards != ranks:
        return None
    if kind in ("hybrid_shard", "hybrid_shard_zero2"):
        return kind if shards == min(on_node, ranks) else None
    if kind == "ddp":
        return kind if shards == 1 else None
    if replicas == 1:
        return kind or "full_shard"
    if "replicas" not in sizes or kind not in (None, "full_shard", "shard_grad_op"):
        return None
    if shards == 1:
        return "ddp"
    return {"shard_grad_op": "hybrid_shard_zero2"}.get(kind, "hybrid_shard") if shards == on_node else None


def strategy(text, ranks, on_node, elsewhere=()):
    """As ftc calls it, None where the text does not say one; `elsewhere` has phrases of what other columns state, too."""
    sizes, rest = _sizes(text.replace("_", " "))
    found, left = take(rest, _of_all(ranks, on_node), elsewhere, STRATEGIES, ALONE if ranks == 1 else ())
    if left or 0 in sizes.values() or ("single" in found and ranks > 1):
        return None
    if ranks == 1:
        return "no_shard" if all(size == 1 for size in sizes.values()) else None
    kind = agreed(found)
    if found and kind is None:
        return None
    return _with_sizes(kind, sizes, ranks, on_node) if sizes else kind


def recomputation(text, selective=None):
    """As ftc's --remat, None where the text does not say one; `selective` is what that word alone means."""
    text = text.replace("_", " ")
    every = re.fullmatch(EVERY, text)
    if every and (selective or "").startswith("every_n:"):
        return f"every_n:{every[1] or 2}"
    if selective and take(text, ((r"\bselective\b", "selective"), (CHECKPOINTING, None))) == ({"selective"}, []):
        return selective
    found, left = take(text, RECOMPUTATION)
    if found in ({"layers"}, {"full", "layers"}):
        return None if left else "full"
    return agreed(found - {"layers"} if "layers" in found and "none" in found else found) if not left else None


def offload(text):
    """As ftc's --offload, None where the text does not say one."""
    found, left = take(text, OFFLOADED)
    if left or not found or ("none" in found and len(found) > 1):
        return None
    return ",".join(what for what in ("optimizer", "activations", "parameters") if what in found) or "none"


def dtypes(text):
    """What is said of types: "bf16", and perhaps "master" (weights in fp32), "true" (none), "reduce fp32"; None where not all is known."""
    found, left = take(text, DTYPES)
    found |= {"bf16"} if "true" in found else set()
    return None if left or "bf16" not in found or {"master", "true"} <= found or {"reduce fp32", "reduce bf16"} <= found else found


def compiled(text):
    """"no", "yes", "yes, by xla" or another that torch has not; "" if not stated; other texts as they stand."""
    rest, denied = re.subn(NOT_COMPILED, "|", text)
    no, yes = denied or re.match(NO, text), re.search(rf"\b{COMPILER}\b", rest) or re.match(YES, rest.lstrip(" |,;("))
    other = re.match(OTHER_COMPILERS, text)
    if re.search(UNCLEAR, text) or (no and (yes or other)) or (yes and "eager" in text):
        return f"unclear: {text}"
    return f"yes, by {other[0]}" if other else "no" if no else "yes" if yes else text
