"""Scaled dot product attention: the dialect's own where its masks say it, else products and a softmax."""
import math

import torch

from ..errors import Unsupported
from ..registry import op, refuse
from ..text import real
from .activations import softmax_of_rows
from .random import dropped

# Scores below this are those of keys that a query does not see.
HIDDEN = -1e30


@op("scaled_dot_product_attention", "_scaled_dot_product_flash_attention_for_cpu")
def attention(graph, q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False, **_):
    q, k, v = (graph.value(x, "f32") for x in (q, k, v))
    flags = said_by_flags(attn_mask, is_causal, q.shape[-2], k.shape[-2])
    fits = q.rank == 4 and q.shape[-2] == k.shape[-2] and q.shape[-1] == v.shape[-1] and q.shape[0] == k.shape[0] and (scale is None or scale > 0)
    if flags is not None and fits:
        fewer = unrepeated(k, q), unrepeated(v, q)
        return whole(graph, q, *(fewer if fewer[0].shape[1] == fewer[1].shape[1] else (k, v)), flags, dropout_p, scale)
    if enable_gqa and q.shape[-3] != k.shape[-3]:
        k, v = repeated(graph, k, q.shape[-3]), repeated(graph, v, q.shape[-3])
    if is_causal:
        attn_mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
    return by_products(graph, q, k, v, attn_mask, dropout_p, scale)


def said_by_flags(mask, causal, queries, keys):
    """" causal window 4" and the like where a mask that is known says nothing else; else None."""
    if mask is None:
        return " causal" * causal
    if not isinstance(mask, torch.Tensor) or causal:
        return None
    if mask.is_floating_point():
        if not bool(((mask == 0) | (mask < HIDDEN)).all()):
            return None
        mask = mask == 0
    mask = mask.reshape(-1, *mask.shape[-2:])
    if not bool((mask == mask[:1]).all()):
        return None
    return banded(mask[0].expand(queries, keys) if mask.dim() == 3 else mask[0])


def banded(mask):
    """Flags of a mask [T, T] that depends on the distance of query and key."""
    size = mask.shape[0]
    if mask.shape[0] != mask.shape[1]:
        return None
    away = torch.arange(size)[:, None] - torch.arange(size)[None, :]
    if bool(mask.all()):
        return ""
    window = int(mask[:, 0].sum())
    for flags, wanted in ((" causal", away >= 0), (f" causal window {window}", (away >= 0) & (away < window)), (f" window {window}", away.abs() < window)):
        if torch.equal(mask, wanted):
            return flags
    return None


def unrepeated(x, q):
    """Key or value heads before each was repeated for several query heads."""
    line = x.line
    if line is None or line.name != "reshape" or x.shape[1] != q.shape[1]:
        return x
    spread = line.operands[0].line
    if spread is None or spread.name != "broadcast" or line.operands[0].rank != 5:
        return x
    base, shape = spread.operands[0], line.operands[0].shape
    if base.rank != 5 or base.shape[2] != 1 or shape[:2] != base.shape[:2] or shape[3:] != base.shape[3:] or shape[1] * shape[2] != x.shape[1]:
        return x
    before = base.line.operands[0] if base.line is not None and base.line.name == "reshape" else None
    wanted = base.shape[:2] + base.shape[3:]
    return before if before is not None and before.shape == wanted else x


def side_by_side(graph, x):
    """[B, H, T, S] as [B, T, H S]."""
    y = graph.transpose(x, [0, 2, 1, 3])
    return graph.reshape(y, (x.shape[0], x.shape[2], x.shape[1] * x.shape[3]))


def whole(graph, q, k, v, flags, rate, scale):
    batch, heads, length, size = q.shape
    flat = [side_by_side(graph, x) for x in (q, k, v)]
    operands, drawn = list(flat), ""
    if rate:
        rng = graph.rng()
        operands.append(rng)
        drawn = f" dropout {real(rate)} rng {rng.name} stream {graph.next_stream()}"
    scaled = "" if scale is None else f" scale {real(scale)}"
    body = f" {', '.join(x.name for x in flat)}{drawn} heads {heads} kv_heads {k.shape[1]}{flags}{scaled}"
    types = f"({', '.join(x.type for x in operands)}) -> ({flat[0].type}, tensor<{batch}x{heads}x{length}xf32>)"
    out, _ = graph.new("attention", operands, body, [(flat[0].shape, "f32"), ((batch, heads, length), "f32")], types)
    return graph.transpose(graph.reshape(out, (batch, length, heads, size)), [0, 2, 1, 3])


def repeated(graph, x, heads):
    lead, (have, length, size) = x.shape[:-3], x.shape[-3:]
    if heads % have:
        raise Unsupported(f"{heads} heads cannot share {have} key and value heads evenly")
    spread = graph.broadcast(graph.reshape(x, lead + (have, 1, length, size)), lead + (have, heads // have, length, size))
    return graph.reshape(spread, lead + (heads, length, size))


def by_products(graph, q, k, v, mask, rate, scale):
    scores = graph.scale(graph.dot(q, k, transpose_b=True), scale if scale is not None else 1 / math.sqrt(q.shape[-1]))
    seen = None
    if mask is not None:
        mask = graph.value(mask)
        if mask.element == "i1":
            seen = mask
            scores = graph.select(mask, scores, graph.fill(HIDDEN))
        else:
            scores = graph.map("add", scores, mask)
    weights = softmax_of_rows(graph, scores)
    # A query that sees no key has nothing, as in PyTorch.
    weights = weights if seen is None else graph.select(seen, weights, graph.fill(0))
    return graph.dot(dropped(graph, weights, rate), v)


refuse("attention of this kind is made by PyTorch where no gradient is wanted; export the module with gradients", """
    _native_multi_head_attention _transformer_encoder_layer_fwd
""")
