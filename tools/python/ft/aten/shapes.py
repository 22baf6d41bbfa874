"""Shapes: what moves elements and computes nothing."""
import math

from ..errors import Unsupported
from ..registry import op, refuse


@op("view", "_unsafe_view", "reshape", "unsqueeze", "squeeze", "flatten", "unflatten", "_reshape_alias", "view_copy", "squeeze_copy", "unsqueeze_copy")
def reshape(graph, x, *_, **__):
    x = graph.value(x)
    if math.prod(x.shape) != math.prod(graph.shape):
        raise Unsupported("a view of other bytes is not taken")
    return graph.reshape(x, graph.shape)


@op("clone", "alias", "contiguous", "lift_fresh_copy", "lift_fresh", "_conj", "resolve_conj", "resolve_neg", "alias_copy", "detach_copy")
def same(graph, x, **_):
    return graph.value(x)


@op("_to_copy", "to", "type_as", "_to_cpu")
def to(graph, x, *_, **__):
    return graph.value(x, graph.element)


@op("copy")
def copy(graph, x, source, non_blocking=False):
    return graph.value(source, graph.element, graph.shape)


@op("expand", "expand_copy", "broadcast_to", "expand_as")
def expand(graph, x, *_, **__):
    return graph.broadcast(graph.value(x), graph.shape)


@op("transpose", "swapaxes", "transpose_copy")
def transpose(graph, x, a, b):
    return graph.swap(graph.value(x), a, b)


@op("t", "numpy_T", "t_copy")
def t(graph, x):
    x = graph.value(x)
    return graph.transpose(x, list(range(x.rank))[::-1])


@op("permute", "permute_copy")
def permute(graph, x, order):
    return graph.transpose(graph.value(x), order)


@op("cat", "concat")
def cat(graph, parts, dim=0):
    parts = [graph.value(part, graph.element) for part in parts if 0 not in part.shape]
    return graph.concat(parts, dim)


@op("stack")
def stack(graph, parts, dim=0):
    parts = [graph.value(part, graph.element) for part in parts]
    dim %= len(graph.shape)
    shape = parts[0].shape[:dim] + (1,) + parts[0].shape[dim:]
    return graph.concat([graph.reshape(part, shape) for part in parts], dim)


# ---- parts

def bounds(extent, begin, end):
    """As Python's slices."""
    begin = 0 if begin is None else begin + extent if begin < 0 else begin
    end = extent if end is None else end + extent if end < 0 else end
    return min(max(begin, 0), extent), min(max(end, 0), extent)


@op("slice", "slice_copy")
def sliced(graph, x, dim=0, start=None, end=None, step=1):
    x = graph.value(x)
    begin, end = bounds(x.shape[dim], start, end)
    if end <= begin:
        raise Unsupported("a slice without elements is not taken")
    return strided(graph, graph.slice(x, dim, begin, end), dim % x.rank, step)


def strided(graph, x, axis, step):
    """Every step-th element along an axis, from the first."""
    if step == 1:
        return x
    count = -(-x.shape[axis] // step)
    padded = list(x.shape)
    padded[axis] = count * step
    x = graph.pad(x, [0] * x.rank, padded) if count * step != x.shape[axis] else x
    split = graph.reshape(x, x.shape[:axis] + (count, step) + x.shape[axis + 1:])
    return graph.reshape(graph.slice(split, axis + 1, 0, 1), x.shape[:axis] + (count,) + x.shape[axis + 1:])


@op("select", "select_copy")
def select(graph, x, dim, index):
    x = graph.value(x)
    index %= x.shape[dim]
    return graph.reshape(graph.slice(x, dim, index, index + 1), graph.shape)


@op("narrow", "narrow_copy")
def narrow(graph, x, dim, start, length):
    x = graph.value(x)
    return graph.slice(x, dim, start % x.shape[dim], start % x.shape[dim] + length)


@op("split", "split_with_sizes", "chunk", "tensor_split", "split_copy", "split_with_sizes_copy")
def split(graph, x, sizes, dim=0):
    x, begin, parts = graph.value(x), 0, []
    for part in graph.output:
        parts.append(graph.slice(x, dim, begin, begin + part.shape[dim]))
        begin += part.shape[dim]
    return parts


@op("unbind", "unbind_copy")
def unbind(graph, x, dim=0):
    x = graph.value(x)
    return [graph.reshape(graph.slice(x, dim, i, i + 1), part.shape) for i, part in enumerate(graph.output)]


def replaced(graph, x, source, axis, begin, end):
    """x with what lies from begin to end along an axis taken from `source`."""
    return graph.concat([part for part in (graph.slice(x, axis, 0, begin) if begin else None, source,
                                           graph.slice(x, axis, end, x.shape[axis]) if end < x.shape[axis] else None) if part is not None], axis)


@op("slice_scatter")
def slice_scatter(graph, x, source, dim=0, start=None, end=None, step=1):
    x, source = graph.value(x), graph.value(source, graph.element)
    axis = dim % x.rank
    begin, end = bounds(x.shape[axis], start, end)
    if step != 1:
        return interleaved(graph, x, source, axis, begin, end, step)
    return replaced(graph, x, graph.broadcast(source, x.shape[:axis] + (end - begin,) + x.shape[axis + 1:]), axis, begin, end)


def interleaved(graph, x, source, axis, begin, end, step):
    """Every step-th element from begin to end taken from `source`: those of both side by side, chosen by place."""
    import torch
    places = torch.arange(begin, end, step)
    order, taken = torch.zeros(x.shape[axis], dtype=torch.long), torch.zeros(x.shape[axis], dtype=torch.bool)
    order[places], taken[places] = torch.arange(len(places)), True
    from .indexing import chosen
    spread = chosen(graph, source, axis, graph.value(order))
    taken = graph.reshape(graph.value(taken), [extent if d == axis else 1 for d, extent in enumerate(x.shape)])
    return graph.select(taken, spread, x)


@op("select_scatter")
def select_scatter(graph, x, source, dim, index):
    x = graph.value(x)
    axis, index = dim % x.rank, index % x.shape[dim]
    source = graph.reshape(graph.value(source, graph.element), x.shape[:axis] + (1,) + x.shape[axis + 1:])
    return replaced(graph, x, source, axis, index, index + 1)


# ---- repetition, order

@op("repeat", "tile")
def repeat(graph, x, repeats):
    x = graph.value(x)
    shape = (1,) * (len(repeats) - x.rank) + x.shape
    repeats = (1,) * (len(shape) - len(repeats)) + tuple(repeats)
    x = graph.reshape(x, [extent for pair in ((1, extent) for extent in shape) for extent in pair])
    x = graph.broadcast(x, [extent for pair in zip(repeats, shape) for extent in pair])
    return graph.reshape(x, graph.shape)


@op("repeat_interleave")
def repeat_interleave(graph, x, repeats, dim=None, output_size=None):
    if not isinstance(repeats, int):
        raise Unsupported("repetitions are taken as a number")
    x = graph.value(x)
    x, axis = (graph.reshape(x, [math.prod(x.shape)]), 0) if dim is None else (x, dim % x.rank)
    spread = graph.reshape(x, x.shape[:axis + 1] + (1,) + x.shape[axis + 1:])
    return graph.reshape(graph.broadcast(spread, x.shape[:axis + 1] + (repeats,) + x.shape[axis + 1:]), graph.shape)


@op("roll")
def roll(graph, x, shifts, dims=()):
    x = graph.value(x)
    shifts, dims = ([v] if isinstance(v, int) else list(v) for v in (shifts, dims))
    shape = x.shape
    if not dims:
        x, dims = graph.reshape(x, [math.prod(shape)]), [0]
    for amount, axis in zip(shifts, dims):
        cut = -amount % x.shape[axis]
        if cut:
            x = graph.concat([graph.slice(x, axis, cut, x.shape[axis]), graph.slice(x, axis, 0, cut)], axis)
    return graph.reshape(x, shape)


@op("flip")
def flip(graph, x, dims):
    import torch
    from .indexing import chosen
    x = graph.value(x)
    for axis in dims:
        x = chosen(graph, x, axis % x.rank, graph.value(torch.arange(x.shape[axis]).flip(0)))
    return x


@op("unfold", "unfold_copy")
def unfold(graph, x, dim, size, step):
    x = graph.value(x)
    axis = dim % x.rank
    parts = []
    for begin in range(0, x.shape[axis] - size + 1, step):
        part = graph.slice(x, axis, begin, begin + size)
        order = [d for d in range(x.rank) if d != axis] + [axis]
        part = graph.transpose(part, order)
        parts.append(graph.reshape(part, part.shape[:axis] + (1,) + part.shape[axis:]))
    return graph.concat(parts, axis)


@op("constant_pad_nd", "pad")
def constant_pad_nd(graph, x, pad, value=0, **options):
    if value is None or options.get("mode", "constant") != "constant":
        value = value or 0
    x, low, shape = graph.value(x), [0] * len(graph.shape), list(graph.shape)
    for i in range(0, len(pad), 2):
        axis, before, after = x.rank - 1 - i // 2, pad[i], pad[i + 1]
        x = graph.slice(x, axis, max(-before, 0), x.shape[axis] + min(after, 0))
        low[axis] = max(before, 0)
    if not value:
        return graph.pad(x, low, shape)
    if x.element == "f32" and math.isfinite(value):
        return graph.shift(graph.pad(graph.shift(x, -value), low, shape), value)
    import torch
    inside = torch.zeros(shape, dtype=torch.bool)
    inside[tuple(slice(begin, begin + extent) for begin, extent in zip(low, x.shape))] = True
    return graph.select(graph.value(inside), graph.pad(x, low, shape), graph.scalar(value, x.element))


@op("tril", "triu")
def triangle(graph, x, diagonal=0):
    import torch
    x = graph.value(x)
    ones = torch.ones(x.shape[-2:], dtype=torch.bool)
    mask = (torch.tril if "tril" in str(graph.node.target) else torch.triu)(ones, diagonal)
    return graph.select(graph.value(mask), x, graph.scalar(0, x.element))


@op("diagonal", "diagonal_copy")
def diagonal(graph, x, offset=0, dim1=0, dim2=1):
    import torch
    x = graph.value(x)
    a, b = dim1 % x.rank, dim2 % x.rank
    x = graph.transpose(x, [d for d in range(x.rank) if d not in (a, b)] + [a, b])
    places = torch.arange(x.shape[-2] * x.shape[-1]).reshape(x.shape[-2:]).diagonal(offset)
    flat = graph.reshape(x, x.shape[:-2] + (x.shape[-2] * x.shape[-1],))
    return graph.gather(flat, graph.broadcast(graph.value(places.contiguous()), graph.shape))


STRIDES = "a view by strides is not taken; use reshape, transpose and slices"


@op("as_strided", "as_strided_copy")
def as_strided(graph, x, size, stride, offset=None):
    """One that has each element where it was, as PyTorch makes of means over places of what was turned."""
    source, x = graph.node.args[0].meta["val"], graph.value(x)
    moved = [a != b for a, b, extent in zip(stride, source.stride(), size) if extent > 1]
    if tuple(size) != x.shape or any(moved) or offset not in (None, source.storage_offset()):
        raise Unsupported(STRIDES)
    return x


refuse(STRIDES, "as_strided_scatter")
refuse("padding by reflection or repetition is not taken; pad with zeros", """
    reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d
""")
refuse("pictures are not scaled; give them their size before, and export the module for it", """
    upsample_nearest1d upsample_nearest2d upsample_bilinear2d upsample_bicubic2d _upsample_bicubic2d_aa _upsample_bilinear2d_aa upsample_linear1d
    upsample_trilinear3d grid_sampler_2d grid_sampler_3d _adaptive_avg_pool2d_backward im2col col2im
""")
