"""Orders and counts: the ids of elements by size, and what is chosen by them."""
import math

from ..errors import Unsupported
from ..registry import op, refuse


def sorted_rows(graph, x, dim, count, descending):
    """Elements and their ids along `dim`."""
    x = graph.value(x)
    if x.rank == 0:
        return x, graph.scalar(0, "i32")
    axis, last = dim % x.rank, x.rank - 1
    rows = graph.swap(x, axis, last)
    ids = graph.argsort(graph.convert(rows, "i32") if rows.element == "i1" else rows, count, descending)
    return graph.swap(graph.gather(rows, ids), axis, last), graph.swap(ids, axis, last)


@op("topk")
def topk(graph, x, k, dim=-1, largest=True, sorted=True):
    return sorted_rows(graph, x, dim, k, largest)


@op("sort")
def sort(graph, x, dim=-1, descending=False, stable=None):
    if isinstance(dim, bool):
        raise Unsupported("sort by position of arguments; name dim and descending")
    return sorted_rows(graph, x, dim, None, descending)


@op("sort.stable")
def sort_stable(graph, x, stable=None, dim=-1, descending=False):
    return sorted_rows(graph, x, dim, None, descending)


@op("argsort", "msort")
def argsort(graph, x, dim=-1, descending=False, stable=None):
    return sorted_rows(graph, x, dim, None, descending)[1]


@op("argsort.stable")
def argsort_stable(graph, x, stable=None, dim=-1, descending=False):
    return sorted_rows(graph, x, dim, None, descending)[1]


def extreme(graph, x, dim, descending):
    x = graph.value(x)
    if dim is None:
        x, dim = graph.reshape(x, [math.prod(x.shape)]), 0
    values, ids = sorted_rows(graph, x, dim, 1, descending)
    return values, ids


@op("argmax", "argmin")
def argmax(graph, x, dim=None, keepdim=False):
    return graph.reshape(extreme(graph, x, dim, "argmax" in str(graph.node.target))[1], graph.shape)


@op("max.dim", "min.dim")
def max_dim(graph, x, dim, keepdim=False):
    """The elements are chosen by their ids, so that one of equals has all of the gradient."""
    values, ids = extreme(graph, x, dim, "max" in str(graph.node.target))
    return graph.reshape(values, graph.output[0].shape), graph.reshape(ids, graph.output[1].shape)


@op("max", "min")
def max_all(graph, x, y=None):
    kind = "max" if "max" in str(graph.node.target) else "min"
    if y is not None:
        return graph.map(kind + "imum", graph.value(x, graph.element), graph.value(y, graph.element))
    return graph.reduce(kind, graph.value(x))


@op("bincount", "histc")
def histogram(graph, x, *_, **__):
    if graph.node.target.__name__.startswith("histc"):
        bins, low, high = (list(graph.node.args[1:]) + [100, 0, 0][len(graph.node.args) - 1:])[:3]
        low, high = graph.node.kwargs.get("min", low), graph.node.kwargs.get("max", high)
        if (low, high) not in ((0, bins - 1), (0, bins)):
            raise Unsupported("histc is taken of ids from 0, a bin for each")
    ids = graph.convert(graph.value(x), "i32")
    ids = graph.reshape(ids, [math.prod(ids.shape)])
    counts = graph.new("histogram", [ids], f" {ids.name}", [(graph.shape, "i32")], f"{ids.type} -> tensor<{graph.shape[0]}xi32>")
    return graph.convert(counts, graph.element)


@op("searchsorted", "bucketize")
def bucketize(graph, x, bounds, out_int32=False, right=False, **_):
    """How many bounds lie below (with right: not above) each element."""
    name = str(graph.node.target)
    x, bounds = (x, bounds) if "bucketize" in name else (bounds, x)
    x, bounds = graph.value(x, "f32"), graph.value(bounds, "f32")
    if bounds.rank != 1:
        raise Unsupported("bounds are taken as one vector")
    below = graph.compare("le" if right else "lt", bounds, graph.reshape(x, x.shape + (1,)))
    return graph.sum(graph.convert(below, "i32"), [x.rank])


refuse("its shape depends on the values of tensors; use masks and torch.where", """
    nonzero masked_select unique _unique2 unique_consecutive unique_dim repeat_interleave.Tensor nonzero_static argwhere
""")
refuse("a number that the values of a tensor say (item, tolist) is not known beforehand; use masks and torch.where", "_local_scalar_dense item")
