"""Norms."""
import math

from ..registry import op, refuse
from ..text import real
from .recognized import rms_norm_of


@op("layer_norm")
def layer_norm(graph, x, shape, weight=None, bias=None, eps=1e-5, *_):
    x = graph.value(x, "f32")
    rows = graph.reshape(x, x.shape[:x.rank - len(shape)] + (math.prod(shape),))
    if weight is not None:
        weight = graph.reshape(graph.value(weight), rows.shape[-1:])
        bias = graph.broadcast(graph.fill(0), weight.shape) if bias is None else graph.reshape(graph.value(bias), weight.shape)
        body = f" {rows.name}, {weight.name}, {bias.name} eps {real(eps)}"
        y = graph.new("layer_norm", [rows, weight, bias], body, [(rows.shape, "f32")], f"{rows.type}, {weight.type}, {bias.type}")
    else:
        y = normalized(graph, rows, [-1], eps)
    return graph.reshape(y, x.shape)


@op("native_layer_norm")
def native_layer_norm(graph, *args):
    return layer_norm(graph, *args), None, None


def normalized(graph, x, axes, eps):
    centered = graph.map("sub", x, graph.mean(x, axes, True))
    variance = graph.mean(graph.map("square", centered), axes, True)
    return graph.map("mul", centered, graph.map("rsqrt", graph.shift(variance, eps)))


@op("rms_norm", "_fused_rms_norm")
def rms_norm(graph, x, shape, weight=None, eps=None):
    x = graph.value(x, "f32")
    eps = 1.1920928955078125e-07 if eps is None else eps
    rows = graph.reshape(x, x.shape[:x.rank - len(shape)] + (math.prod(shape),))
    if weight is None:
        return graph.reshape(graph.map("mul", rows, graph.map("rsqrt", graph.shift(graph.mean(graph.map("square", rows), [-1], True), eps))), x.shape)
    return graph.reshape(rms_norm_of(graph, rows, graph.reshape(graph.value(weight), rows.shape[-1:]), eps), x.shape)


@op("group_norm", "native_group_norm")
def group_norm(graph, x, *args):
    """Of x [N, C, ...] the channels in groups, each normalized by itself."""
    if graph.node.target.__name__.startswith("native"):
        weight, bias, _, _, _, groups, eps = args
    else:
        groups, weight, bias, eps = (list(args) + [None, None, 1e-5][len(args) - 1:])[:4]
    x = graph.value(x, "f32")
    rows = graph.reshape(x, (x.shape[0], groups, math.prod(x.shape[1:]) // groups))
    y = graph.reshape(normalized(graph, rows, [-1], eps), x.shape)
    per_channel = lambda v: graph.reshape(graph.value(v), (x.shape[1],) + (1,) * (x.rank - 2))
    y = y if weight is None else graph.map("mul", y, per_channel(weight))
    y = y if bias is None else graph.map("add", y, per_channel(bias))
    return (y, None, None) if graph.node.target.__name__.startswith("native") else y


refuse("batch norm is not taken: its means are of the batch of a rank, or state that training changes; use layer_norm, rms_norm or group_norm", """
    batch_norm _native_batch_norm_legit native_batch_norm _native_batch_norm_legit_functional _native_batch_norm_legit_no_training _batch_norm_with_update
    _batch_norm_with_update_functional _batch_norm_no_update cudnn_batch_norm _batch_norm_impl_index sync_batch_norm
""")

refuse("instance norm is not taken; use group_norm with as many groups as there are channels", "instance_norm")
