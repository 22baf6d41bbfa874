"""Elements written to places by ids."""
import math

import torch

from ..errors import Unsupported
from ..registry import op, refuse
from ..text import Value
from .indexing import chosen, distinct, places, rows


def in_rows(graph, x, ids, extents, axis):
    """x and ids with `axis` last, and as wide as `extents` in all other dimensions: what is added there has no id."""
    last = len(extents) - 1
    wanted = [ids.shape[d] if d == axis else extent for d, extent in enumerate(extents)]
    if list(ids.shape) != wanted:
        missing = graph.pad(graph.shift(ids, 1), [0] * ids.rank, wanted)
        ids, x = graph.shift(missing, -1), graph.pad(x, [0] * x.rank, wanted)
    return graph.swap(x, axis, last), graph.swap(ids, axis, last)


def added(graph, x, axis, ids, source):
    """x plus what `source` has for the ids."""
    for d in range(source.rank):
        source = graph.slice(source, d, 0, ids.shape[d])
    rows_, ids = in_rows(graph, source, ids, x.shape, axis)
    return graph.map("add", x, graph.swap(graph.scatter_add(rows_, ids, x.shape[axis]), axis, x.rank - 1))


@op("scatter_add")
def scatter_add(graph, x, dim, ids, source):
    x = graph.value(x)
    floats = graph.convert(x, "f32")
    result = added(graph, floats, dim % x.rank, graph.value(ids, "i32"), graph.value(source, "f32"))
    return graph.convert(result, x.element)


@op("scatter_reduce")
def scatter_reduce(graph, x, dim, ids, source, reduce, include_self=True):
    if reduce != "sum" or not include_self:
        raise Unsupported("what is scattered is summed only")
    return scatter_add(graph, x, dim, ids, source)


def hits(graph, x, axis, ids):
    """Where ids write to."""
    ones = graph.broadcast(graph.fill(1), ids.shape)
    return graph.compare_number("ne", added(graph, graph.broadcast(graph.fill(0), x.shape), axis, ids, ones), 0)


@op("scatter")
def scatter(graph, x, dim, ids, source, reduce=None):
    if reduce == "add":
        return scatter_add(graph, x, dim, ids, source)
    if reduce is not None:
        raise Unsupported("what is scattered is written or added only")
    x, ids, axis = graph.value(x), graph.value(ids, "i32"), dim % max(len(graph.shape), 1)
    written = hits(graph, x, axis, ids)
    if not isinstance(source, (torch.Tensor, Value)):
        return graph.select(written, graph.scalar(source, x.element), x)
    if not distinct(ids):
        raise Unsupported("which of several elements with one id is written is not said; add them, or take ids from topk or sort")
    source = graph.value(source, "f32")
    spread = added(graph, graph.broadcast(graph.fill(0), x.shape), axis, ids, source)
    return graph.select(written, graph.convert(spread, x.element), x)


@op("index_add")
def index_add(graph, x, dim, ids, source, alpha=1):
    x, ids = graph.value(x), graph.value(ids, "i32")
    axis, last = dim % x.rank, x.rank - 1
    source = graph.swap(graph.scale(graph.value(source, x.element), alpha), axis, last)
    ids = graph.broadcast(graph.reshape(ids, [math.prod(ids.shape)]), source.shape)
    return graph.map("add", x, graph.swap(graph.scatter_add(source, ids, x.shape[axis]), axis, last))


@op("index_put", "_unsafe_index_put", "_index_put_impl")
def index_put(graph, x, indices, source, accumulate=False, unsafe=False):
    x = graph.value(x)
    axes, ids = places(graph, x, list(indices))
    others = [d for d in range(x.rank) if d not in axes]
    count, rest = math.prod(x.shape[a] for a in axes), [x.shape[d] for d in others]
    table = graph.reshape(graph.transpose(x, axes + others), [count] + rest)
    source = graph.value(source, x.element)
    source = graph.broadcast(source, order_of_source(axes, tuple(ids.shape), rest))
    source = sources_first(graph, source, axes, len(ids.shape))
    source = graph.reshape(source, [math.prod(ids.shape)] + rest)
    if accumulate:
        table = accumulated(graph, table, graph.reshape(graph.value(ids, "i32"), [source.shape[0]]), source)
    elif isinstance(ids, torch.Tensor):
        table = replaced(graph, table, ids.flatten(), source)
    else:
        table = permuted(graph, table, ids, source)
    inverse = sorted(range(x.rank), key=(axes + others).__getitem__)
    return graph.transpose(graph.reshape(table, [x.shape[a] for a in axes] + rest), inverse)


def order_of_source(axes, ids_shape, rest):
    """The shape of what is written: ids in the place of adjacent axes, else at the front."""
    before = axes[0] if axes == list(range(axes[0], axes[0] + len(axes))) else 0
    return tuple(rest[:before]) + ids_shape + tuple(rest[before:])


def sources_first(graph, source, axes, ids_rank):
    before = axes[0] if axes == list(range(axes[0], axes[0] + len(axes))) else 0
    return graph.transpose(source, list(range(before, before + ids_rank)) + list(range(before)) + list(range(before + ids_rank, source.rank)))


def accumulated(graph, table, ids, source):
    """Rows of `source` added to those of the table, by columns."""
    width = math.prod(table.shape[1:])
    flat = graph.transpose(graph.reshape(source, (source.shape[0], width)), [1, 0])
    sums = graph.scatter_add(flat, graph.broadcast(ids, flat.shape), table.shape[0])
    return graph.map("add", table, graph.reshape(graph.transpose(sums, [1, 0]), table.shape))


def replaced(graph, table, ids, source):
    """At known places: each row of the table comes from where it is written last, or stays."""
    origin, written = torch.zeros(table.shape[0], dtype=torch.long), torch.zeros(table.shape[0], dtype=torch.bool)
    for k, place in enumerate(ids.tolist()):
        origin[place], written[place] = k, True
    begin = int(ids.min())
    if torch.equal(ids, torch.arange(len(ids)) + begin):
        parts = [graph.slice(table, 0, 0, begin) if begin else None, source,
                 graph.slice(table, 0, begin + len(ids), table.shape[0]) if begin + len(ids) < table.shape[0] else None]
        return graph.concat([part for part in parts if part is not None], 0)
    spread = rows(graph, source, graph.value(origin))
    written = graph.reshape(graph.value(written), [table.shape[0]] + [1] * (table.rank - 1))
    return graph.select(graph.broadcast(written, table.shape), spread, table)


def permuted(graph, table, ids, source):
    """At the places of a whole order: the rows by the inverse of it, which is the order of its ids."""
    if not distinct(ids) or math.prod(ids.shape) != table.shape[0]:
        raise Unsupported("ids that are written to are known, or a whole order (argsort); use scatter_add, or torch.where")
    return rows(graph, source, graph.argsort(graph.reshape(ids, [table.shape[0]])))


@op("diagonal_scatter")
def diagonal_scatter(graph, x, source, offset=0, dim1=0, dim2=1):
    x, source = graph.value(x), graph.value(source)
    a, b = dim1 % x.rank, dim2 % x.rank
    others = [d for d in range(x.rank) if d not in (a, b)]
    flat = graph.transpose(x, others + [a, b])
    grid = torch.arange(x.shape[a] * x.shape[b]).reshape(x.shape[a], x.shape[b]).diagonal(offset).contiguous()
    origin, written = torch.zeros(x.shape[a] * x.shape[b], dtype=torch.long), torch.zeros(x.shape[a] * x.shape[b], dtype=torch.bool)
    origin[grid], written[grid] = torch.arange(len(grid)), True
    spread = graph.reshape(chosen(graph, source, source.rank - 1, graph.value(origin)), flat.shape)
    mask = graph.reshape(graph.value(written), (x.shape[a], x.shape[b]))
    inverse = sorted(range(x.rank), key=(others + [a, b]).__getitem__)
    return graph.transpose(graph.select(mask, spread, flat), inverse)


refuse("how much a mask takes depends on its values; use torch.where", "masked_scatter")
refuse("writing by ids into a flat tensor is not taken; use scatter_add", "put index_reduce index_copy")
