"""Elements and rows chosen by ids."""
import math

import torch

from ..errors import Unsupported
from ..registry import op
from ..text import Value


def chosen(graph, x, axis, ids):
    """Along an axis the elements of `ids`, of any shape, which takes the place of the axis."""
    axis %= x.rank
    front = graph.transpose(x, [axis] + [d for d in range(x.rank) if d != axis])
    taken = rows(graph, front, ids)  # ids' dimensions, then those of x without the axis
    order = list(range(ids.rank, ids.rank + axis)) + list(range(ids.rank)) + list(range(ids.rank + axis, taken.rank))
    return graph.transpose(taken, order)


def rows(graph, table, ids):
    """table[ids]: of a vector its elements, else rows; floats by an embedding, whose gradient is summed in order of position."""
    width = math.prod(table.shape[1:])
    if table.rank > 1 and table.element == "f32":
        flat = graph.embedding(graph.reshape(table, (table.shape[0], width)), ids)
        return graph.reshape(flat, ids.shape + table.shape[1:])
    if table.rank == 1:
        flat = graph.gather(table, graph.reshape(ids, [math.prod(ids.shape)]))
        return graph.reshape(flat, ids.shape)
    count = math.prod(ids.shape)
    columns = graph.transpose(graph.reshape(table, (table.shape[0], width)), [1, 0])
    taken = graph.gather(columns, graph.broadcast(graph.reshape(ids, [count]), [width, count]))
    return graph.reshape(graph.transpose(taken, [1, 0]), ids.shape + table.shape[1:])


@op("embedding")
def embedding(graph, table, ids, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    if scale_grad_by_freq:
        raise Unsupported("gradients of an embedding are not scaled by how often a row is read")
    table, ids = graph.value(table), graph.value(ids, "i32")
    result = rows(graph, table, ids)
    if padding_idx is not None and padding_idx >= 0:
        # This row gets no gradient.
        kept = graph.compare_number("ne", ids, padding_idx)
        result = graph.select(graph.broadcast(graph.reshape(kept, ids.shape + (1,)), result.shape), result, graph.map("stop_gradient", result))
    return result


@op("index_select")
def index_select(graph, x, dim, ids):
    return graph.reshape(chosen(graph, graph.value(x), dim, graph.value(ids, "i32")), graph.shape)


@op("gather", "take_along_dim")
def gather(graph, x, dim, ids, sparse_grad=False):
    x, ids = graph.value(x), graph.value(ids, "i32")
    axis, last = dim % max(x.rank, 1), max(x.rank, 1) - 1
    if x.rank == 0:
        return x
    for d in range(x.rank):
        if d != axis and ids.shape[d] != x.shape[d]:
            x = graph.slice(x, d, 0, ids.shape[d])
    return graph.swap(graph.gather(graph.swap(x, axis, last), graph.swap(ids, axis, last)), axis, last)


def distinct(ids):
    """Whether ids are those of an order, each once in a row."""
    line = ids.line
    while line is not None and line.name in ("transpose", "reshape", "slice"):
        line = line.operands[0].line
    return line is not None and line.name == "argsort"


def wrapped(graph, ids, extent):
    """Ids that may be negative, counted from the end then. Known ones are wrapped now."""
    if isinstance(ids, torch.Tensor):
        return ids.to(torch.int64) % extent
    ids = graph.value(ids, "i32")
    if distinct(ids):
        return ids
    return graph.select(graph.compare_number("lt", ids, 0), graph.shift(ids, extent), ids)


def places(graph, x, indices):
    """(axes that are indexed, ids of their elements counted through all of them, shape of the ids)."""
    axes = [axis for axis, ids in enumerate(indices) if ids is not None]
    chosen_ids = [indices[axis] for axis in axes]
    if any(element_of_ids(ids) == "i1" for ids in chosen_ids):
        chosen_ids, axes = unmasked(chosen_ids, axes)
    strides = [math.prod(x.shape[axis] for axis in axes[i + 1:]) for i in range(len(axes))]
    parts = [wrapped(graph, ids, x.shape[axis]) for ids, axis in zip(chosen_ids, axes)]
    if all(isinstance(part, torch.Tensor) for part in parts):
        total = sum(part * stride for part, stride in zip(parts, strides))
        return axes, total
    total = None
    for part, stride in zip(parts, strides):
        part = graph.scale(graph.value(part, "i32"), stride)
        total = part if total is None else graph.map("add", total, part)
    return axes, total


def element_of_ids(ids):
    return "i1" if (ids.dtype == torch.bool if isinstance(ids, torch.Tensor) else ids.element == "i1") else "i32"


def unmasked(indices, axes):
    """Known masks as the ids of what they choose."""
    ids, at = [], []
    for each, axis in zip(indices, axes):
        if element_of_ids(each) != "i1":
            ids.append(each), at.append(axis)
            continue
        if not isinstance(each, torch.Tensor):
            raise Unsupported("how much a mask chooses depends on its values; use torch.where")
        for d, found in enumerate(each.nonzero(as_tuple=True)):
            ids.append(found), at.append(axis + d)
    return ids, at


@op("index", "_unsafe_index")
def index(graph, x, indices):
    x = graph.value(x)
    axes, ids = places(graph, x, list(indices))
    if isinstance(ids, torch.Tensor) and (short := contiguous(graph, x, axes, ids)) is not None:
        return short
    others = [d for d in range(x.rank) if d not in axes]
    front = graph.transpose(x, axes + others)
    table = graph.reshape(front, (math.prod(x.shape[a] for a in axes),) + tuple(x.shape[d] for d in others))
    ids = graph.value(ids, "i32")
    taken = rows(graph, table, ids)
    adjacent = axes == list(range(axes[0], axes[0] + len(axes)))
    if adjacent and axes[0]:
        before = axes[0]
        order = list(range(ids.rank, ids.rank + before)) + list(range(ids.rank)) + list(range(ids.rank + before, taken.rank))
        taken = graph.transpose(taken, order)
    return taken


def contiguous(graph, x, axes, ids):
    """One axis, consecutive ids: a slice."""
    flat = ids.flatten()
    if len(axes) != 1 or len(flat) == 0 or not torch.equal(flat, torch.arange(len(flat)) + flat[0]):
        return None
    begin = int(flat[0])
    axis = axes[0]
    part = graph.slice(x, axis, begin, begin + len(flat))
    return graph.reshape(part, x.shape[:axis] + tuple(ids.shape) + x.shape[axis + 1:])


@op("take")
def take(graph, x, ids):
    x, ids = graph.value(x), graph.value(wrapped(graph, ids, math.prod(x.shape)), "i32")
    return rows(graph, graph.reshape(x, [math.prod(x.shape)]), ids)
