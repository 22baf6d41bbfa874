"""Reductions over dimensions."""
import math

from ..errors import Unsupported
from ..registry import op, refuse


def axes_of(dim):
    return None if dim is None or isinstance(dim, (list, tuple)) and not dim else [dim] if isinstance(dim, int) else list(dim)


@op("sum", "nansum")
def total(graph, x, dim=None, keepdim=False, dtype=None):
    x = graph.value(x, graph.element)
    return graph.sum(x, axes_of(dim), keepdim)


@op("mean")
def mean(graph, x, dim=None, keepdim=False, dtype=None):
    return graph.mean(graph.value(x, "f32"), axes_of(dim), keepdim)


@op("amax")
def amax(graph, x, dim=(), keepdim=False):
    return graph.reduce("max", graph.value(x), axes_of(dim), keepdim)


@op("amin")
def amin(graph, x, dim=(), keepdim=False):
    return graph.reduce("min", graph.value(x), axes_of(dim), keepdim)


@op("any", "all")
def quantified(graph, x, dim=None, keepdim=False):
    x = graph.convert(graph.value(x, "i1"), "i32")
    kind = "max" if graph.node.target.__name__.startswith("any") else "min"
    return graph.compare_number("ne", graph.reduce(kind, x, axes_of(dim), keepdim), 0)


def variance_of(graph, x, axes, correction, keep):
    centered = graph.map("sub", x, graph.mean(x, axes, True))
    count = math.prod(x.shape[axis] for axis in (axes if axes is not None else range(x.rank)))
    squares = graph.sum(graph.map("square", centered), axes, keep)
    return graph.scale(squares, 1 / max(count - correction, 1e-30))


def corrected(unbiased, correction):
    return correction if correction is not None else 1 if unbiased in (None, True) else 0


@op("var")
def var(graph, x, dim=None, unbiased=None, keepdim=False, correction=None):
    x, dim, unbiased = graph.value(x, "f32"), *biased(dim, unbiased)
    return variance_of(graph, x, axes_of(dim), corrected(unbiased, correction), keepdim)


def biased(dim, unbiased):
    """Overloads without dimensions have `unbiased` in their place."""
    return (None, dim) if isinstance(dim, bool) else (dim, unbiased)


@op("std")
def std(graph, x, dim=None, unbiased=None, keepdim=False, correction=None):
    return root(graph, var(graph, x, dim, unbiased, keepdim, correction))


@op("var_mean")
def var_mean(graph, x, dim=None, unbiased=None, keepdim=False, correction=None):
    dim, unbiased = biased(dim, unbiased)
    return var(graph, x, dim, unbiased, keepdim, correction), graph.mean(graph.value(x, "f32"), axes_of(dim), keepdim)


@op("linalg_vector_norm", "norm.ScalarOpt_dim", "norm.Scalar")
def vector_norm(graph, x, ord=2, dim=None, keepdim=False, dtype=None):
    x, axes = graph.value(x, "f32"), axes_of(dim)
    if ord == math.inf:
        return graph.reduce("max", graph.map("abs", x), axes, keepdim)
    if ord == -math.inf:
        return graph.reduce("min", graph.map("abs", x), axes, keepdim)
    if ord == 0:
        return graph.sum(graph.convert(graph.compare_number("ne", x, 0), "f32"), axes, keepdim)
    if ord == 1:
        return graph.sum(graph.map("abs", x), axes, keepdim)
    if ord == 2:
        return root(graph, graph.sum(graph.map("square", x), axes, keepdim))
    return graph.map("pow", graph.sum(graph.map("pow", graph.map("abs", x), numbers=[ord]), axes, keepdim), numbers=[1 / ord])


def root(graph, x):
    """The square root, with gradient 0 at 0, as PyTorch's norms have it."""
    positive = graph.compare_number("gt", x, 0)
    return graph.select(positive, graph.map("sqrt", graph.select(positive, x, graph.fill(1))), graph.fill(0))


@op("prod")
def prod(graph, x, dim=None, keepdim=False, dtype=None):
    x = graph.value(x, graph.element)
    if dim is None:
        x, dim = graph.reshape(x, [math.prod(x.shape)]), 0
    if x.shape[dim] > 64:
        raise Unsupported("products of more than 64 elements are not taken; sum logarithms")
    result = graph.slice(x, dim, 0, 1)
    for i in range(1, x.shape[dim]):
        result = graph.map("mul", result, graph.slice(x, dim, i, i + 1))
    return graph.reshape(result, graph.shape)


@op("cumsum")
def cumsum(graph, x, dim, dtype=None):
    x = graph.value(x, graph.element)
    if x.rank == 0:
        return x
    last = graph.swap(x, dim % x.rank, x.rank - 1)
    return graph.swap(graph.moved("cumsum", last, last.shape), dim % x.rank, x.rank - 1)


refuse("running products, maxima and logarithms of sums are not taken; cumsum is", "cumprod cummax cummin logcumsumexp _cummax_helper _cummin_helper")
refuse("a median or mode is not taken; sort, and choose", "median nanmedian mode kthvalue quantile")
