"""Matrix products."""
from ..builder import broadcast_shape
from ..errors import Unsupported
from ..registry import op


@op("linear")
def linear(graph, x, weight, bias=None):
    x, weight = graph.value(x, "f32"), graph.value(weight)
    bias = None if bias is None else graph.value(bias)
    if x.rank == 1:
        y = graph.matmul(graph.reshape(x, (1, x.shape[0])), weight, bias, transpose_b=True)
        return graph.reshape(y, graph.shape)
    return graph.matmul(x, weight, bias, transpose_b=True)


@op("mm", "matmul", "bmm", "mv", "dot")
def matmul(graph, a, b):
    a, b = graph.value(a, "f32"), graph.value(b, "f32")
    a = graph.reshape(a, (1,) + a.shape) if a.rank == 1 else a
    b = graph.reshape(b, b.shape + (1,)) if b.rank == 1 else b
    if b.rank == 2:
        return graph.reshape(product(graph, a, b), graph.shape)
    return graph.reshape(batched(graph, a, b), graph.shape)


def batched(graph, a, b):
    """Products side by side; a transpose of the last dimensions of b is part of the product."""
    if b.line is not None and b.line.name == "transpose":
        order = b.line.details["permutation"]
        swapped = list(range(b.rank - 2)) + [b.rank - 1, b.rank - 2]
        if order == swapped:
            return graph.dot(a, b.line.operands[0], transpose_b=True)
    return graph.dot(a, b)


def product(graph, x, weight, bias=None):
    """All rows of x times one matrix."""
    if weight.line is not None and weight.line.name == "transpose":
        return graph.matmul(x, weight.line.operands[0], bias, transpose_b=True)
    return graph.matmul(x, weight, bias)


def weighed(graph, x, beta, y, alpha):
    if beta == 0:
        return graph.scale(y, alpha)
    return graph.map("add", graph.scale(graph.value(x, "f32"), beta), graph.scale(y, alpha))


@op("addmm")
def addmm(graph, x, a, b, beta=1, alpha=1):
    x, a, b = graph.value(x), graph.value(a), graph.value(b)
    if x.rank == 1 and beta == alpha == 1 and x.shape[0] == b.shape[1]:
        return product(graph, a, b, x)
    return graph.broadcast(weighed(graph, x, beta, product(graph, a, b), alpha), graph.shape)


@op("baddbmm")
def baddbmm(graph, x, a, b, beta=1, alpha=1):
    return weighed(graph, x, beta, batched(graph, graph.value(a), graph.value(b)), alpha)


@op("addbmm")
def addbmm(graph, x, a, b, beta=1, alpha=1):
    return weighed(graph, x, beta, graph.sum(graph.dot(graph.value(a), graph.value(b)), [0]), alpha)


@op("addmv")
def addmv(graph, x, a, b, beta=1, alpha=1):
    return weighed(graph, x, beta, matmul(graph, a, b), alpha)


@op("addr", "outer", "ger")
def outer(graph, *operands, beta=1, alpha=1):
    a, b = graph.value(operands[-2]), graph.value(operands[-1])
    y = graph.map("mul", graph.reshape(a, (a.shape[0], 1)), graph.broadcast(b, (a.shape[0], b.shape[0])))
    return y if len(operands) == 2 else weighed(graph, operands[0], beta, y, alpha)


@op("_trilinear")
def trilinear(graph, a, b, c, *axes):
    """The product of three tensors, each with the dimensions that it lacks, summed over some."""
    factors = []
    for x, missing in zip((a, b, c), axes):
        x = graph.value(x)
        shape = list(x.shape)
        for axis in sorted(missing):
            shape.insert(axis, 1)
        factors.append(graph.reshape(x, shape))
    wide = broadcast_shape(*(x.shape for x in factors))
    product = graph.map("mul", graph.broadcast(graph.map("mul", factors[0], factors[1]), wide), factors[2])
    return graph.reshape(graph.sum(product, axes[3]), graph.shape)


@op("_grouped_mm", "grouped_mm", "grouped_mm_fallback")
def grouped_mm(graph, x, weight, offs=None, bias=None, out_dtype=None):
    """Groups of rows, each times a matrix of its own."""
    x, weight = graph.value(x), graph.value(weight)
    if x.rank != 2 or weight.rank != 3 or offs is None or bias is not None:
        raise Unsupported("grouped products are taken of rows [N, K] and matrices [G, K, N] with offsets")
    ends = graph.value(offs, "i32")
    transposed = weight.line is not None and weight.line.name == "transpose" and weight.line.details["permutation"] == [0, 2, 1]
    weight = weight.line.operands[0] if transposed else weight
    body = f" {x.name}, {weight.name}, {ends.name}{' transpose_b' * transposed}"
    return graph.new("grouped_dot", [x, weight, ends], body, [(graph.shape, "f32")],
                     f"{x.type}, {weight.type}, {ends.type} -> tensor<{graph.shape[0]}x{graph.shape[1]}xf32>")


@op("_cdist_forward", "cdist")
def cdist(graph, a, b, p=2.0, *_, **__):
    from .reductions import root
    a, b = graph.value(a), graph.value(b)
    lead = graph.shape[:-2]
    a = graph.reshape(a, a.shape[:-1] + (1, a.shape[-1]))
    b = graph.reshape(b, b.shape[:-2] + (1,) + b.shape[-2:])
    away = graph.map("sub", graph.broadcast(a, lead + (a.shape[-3], b.shape[-2], a.shape[-1])), b)
    if p == 2:
        return root(graph, graph.sum(graph.map("square", away), [-1]))
    if p == 1:
        return graph.sum(graph.map("abs", away), [-1])
    raise Unsupported("distances are taken for p of 1 and 2")
