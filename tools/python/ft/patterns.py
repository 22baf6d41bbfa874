"""Patterns that the values of a constant tensor show: arithmetic progressions, steps, bands beside the diagonal, two values."""
import torch

# Of a function of one number, so many steps are said one after the other.
STEPS = 40


def pattern_of(tensor):
    """A function that says the tensor to a graph, exactly, or None. Dimensions along which nothing changes have one element."""
    for find in (progression, steps, band, two_values):
        if (found := find(tensor)) is not None:
            return found
    return None


def axes_of(tensor):
    return [axis for axis, extent in enumerate(tensor.shape) if extent > 1]


def along(graph, shape, axis):
    """0, 1, 2 ... along an axis of `shape`, with one element in the others."""
    return graph.reshape(graph.iota(shape[axis]), [extent if d == axis else 1 for d, extent in enumerate(shape)])


def index_grid(tensor, axis):
    shape = [1] * tensor.dim()
    shape[axis] = tensor.shape[axis]
    return torch.arange(tensor.shape[axis]).reshape(shape)


def progression(tensor):
    """first + sum over axes of step * index; of floats along one axis."""
    if tensor.dtype == torch.bool:
        return None
    axes, first = axes_of(tensor), tensor.flatten()[0].item()
    if tensor.is_floating_point() and (len(axes) != 1 or not torch.isfinite(tensor).all()):
        return None
    steps = [tensor.select(axis, 1).flatten()[0].item() - first for axis in axes]
    guess = torch.full_like(tensor, first) * 0
    for axis, step in zip(axes, steps):
        guess = guess + (index_grid(tensor, axis).to(tensor.dtype) * step).to(tensor.dtype)
    if not torch.equal((guess + first).to(tensor.dtype).expand_as(tensor), tensor):
        return None

    def say(graph):
        total = None
        for axis, step in zip(axes, steps):
            part = along(graph, tensor.shape, axis)
            part = graph.scale(graph.convert(part, "f32") if tensor.is_floating_point() else part, step)
            total = part if total is None else graph.map("add", total, part)
        return graph.broadcast(graph.shift(total, first), tensor.shape)
    return say


def stepped(graph, x, changes, first, kind):
    """`first` where x is below all changes (at, value), else the value of the last one that it has reached."""
    if kind == "i1":
        return flags(graph, x, changes, first)
    result = graph.broadcast(graph.scalar(first, kind), x.shape)
    for at, value in changes:
        result = graph.select(graph.compare_number("ge", x, at), graph.scalar(value, kind), result)
    return result


def flags(graph, x, changes, first):
    """Truth values that change at each of `changes`: an even or odd number of them has been reached."""
    parts, inside = [], [at for at, _ in changes]
    begins, ends = (inside[1::2], inside[0::2]) if first else (inside[0::2], inside[1::2])
    if first:
        parts.append(graph.compare_number("lt", x, ends[0]))
        ends = ends[1:]
    for i, begin in enumerate(begins):
        part = graph.compare_number("ge", x, begin)
        parts.append(graph.map("and", part, graph.compare_number("lt", x, ends[i])) if i < len(ends) else part)
    result = parts[0]
    for part in parts[1:]:
        result = graph.map("or", result, part)
    return result


def kind_of(tensor):
    return "i1" if tensor.dtype == torch.bool else "f32" if tensor.is_floating_point() else "i32"


def changes_of(vector, begin):
    """The places, counted from `begin`, where a vector changes, with what it becomes; None where they are too many."""
    at = (vector[1:] != vector[:-1]).nonzero().flatten() + 1
    return None if len(at) > STEPS else [(int(i) + begin, vector[i].item()) for i in at]


def steps(tensor):
    """A vector with few changes."""
    axes = axes_of(tensor)
    if len(axes) != 1 or bool((tensor != tensor).any()):
        return None
    vector = tensor.flatten()
    changes = changes_of(vector, 0)
    if changes is None or len(changes) * 4 > len(vector) and len(vector) > 3 and tensor.dtype != torch.bool:
        return None
    return lambda graph: stepped(graph, along(graph, tensor.shape, axes[0]), changes, vector[0].item(), kind_of(tensor))


def band(tensor):
    """A matrix that depends on column - row alone (causal masks, windows, buckets of distances), with few changes."""
    axes = axes_of(tensor)
    if len(axes) != 2 or bool((tensor != tensor).any()):
        return None
    matrix = tensor.squeeze()
    if not torch.equal(matrix[1:, 1:], matrix[:-1, :-1]):
        return None
    changes = changes_of(torch.cat([matrix[1:, 0].flip(0), matrix[0]]), 1 - matrix.shape[0])
    if changes is None:
        return None

    def say(graph):
        distance = graph.map("sub", along(graph, tensor.shape, axes[1]), along(graph, tensor.shape, axes[0]))
        return stepped(graph, distance, changes, matrix[-1, 0].item(), kind_of(tensor))
    return say


def two_values(tensor):
    """One of two numbers, where a condition with a pattern says so."""
    if tensor.dtype == torch.bool:
        return None
    first = tensor.flatten()[0]
    condition = tensor == first
    others = tensor[~condition]
    if not others.numel() or not bool((others == others[0]).all()):
        return None
    found = pattern_of(condition)
    if found is None:
        return None
    kind = kind_of(tensor)
    return lambda graph: graph.select(found(graph), graph.scalar(first.item(), kind), graph.scalar(others[0].item(), kind))
