"""Ops of the dialect on Values: shapes of results follow from operands, what changes nothing is not written.

Where an op only moves elements back (a transpose of a transpose, a reshape of a reshape), the one before it is looked through.
"""
import math

from .text import Function, Line, Place, Value, quoted, real, type_of


class Builder:
    """Adds lines to `function`, at `place`."""

    def __init__(self):
        self.function, self.place, self.count = Function("forward"), Place(), 0
        self.reshaped = {}  # one of each shape of a value: who has written the same sees that it is
        self.functions, self.streams, self.state = [], 0, None  # composites that constants became; streams of random numbers so far

    # ---- any op

    def new(self, name, operands, body, results, types, **details):
        """Writes a line; `results` are (shape, element) pairs. Its Values, or the only one."""
        line = Line(name, operands, body, types, details, self.place.layer, self.place.location)
        line.results = tuple(self.named(shape, element, line) for shape, element in results)
        self.function.lines.append(line)
        return line.results if len(results) > 1 else line.results[0]

    def named(self, shape, element, line):
        self.count += 1
        return Value(f"%{self.count}", shape, element, line)

    def moved(self, name, x, shape, body="", **details):
        return self.new(name, [x], f" {x.name}{body}", [(shape, x.element)], f"{x.type} -> {type_of(shape, x.element)}", **details)

    # ---- constants

    def fill(self, number, shape=()):
        if math.isnan(number):  # what a kernel is given as a number is finite
            return self.map("log", self.fill(-1, shape))
        if math.isinf(number):
            lowest = self.map("log", self.fill(0, shape))
            return lowest if number < 0 else self.scale(lowest, -1)
        return self.broadcast(self.new("fill", [], f" {real(number)}", [((), "f32")], type_of((), "f32"), number=float(number)), shape)

    def scalar(self, number, element):
        """A number as a tensor without dimensions."""
        return self.fill(number) if element == "f32" else self.convert(self.fill(number), element)

    def iota(self, extent):
        return self.new("iota", [], "", [((extent,), "i32")], type_of((extent,), "i32"))

    # ---- shapes

    def reshape(self, x, shape):
        shape = tuple(shape)
        while x.line is not None and x.line.name == "reshape":
            x = x.line.operands[0]
        if x.shape == shape:
            return x
        key = self.function, x.name, shape
        if key not in self.reshaped:
            self.reshaped[key] = self.moved("reshape", x, shape)
        return self.reshaped[key]

    def broadcast(self, x, shape):
        """To `shape`, aligned at the last dimension, as torch.Tensor.expand."""
        shape = tuple(shape)
        if x.shape == shape:
            return x
        x = self.reshape(x, (1,) * (len(shape) - x.rank) + x.shape)
        return x if x.shape == shape else self.moved("broadcast", x, shape)

    def transpose(self, x, permutation):
        permutation = [axis % x.rank for axis in permutation]
        if x.line is not None and x.line.name == "transpose":
            permutation = [x.line.details["permutation"][axis] for axis in permutation]
            x = x.line.operands[0]
        if permutation == list(range(x.rank)):
            return x
        return self.moved("transpose", x, [x.shape[axis] for axis in permutation], f" {permutation}", permutation=permutation)

    def swap(self, x, a, b):
        order = list(range(x.rank))
        order[a], order[b] = order[b], order[a]
        return self.transpose(x, order)

    def slice(self, x, axis, begin, end):
        axis %= x.rank
        shape = x.shape[:axis] + (end - begin,) + x.shape[axis + 1:]
        at = [begin if d == axis else 0 for d in range(x.rank)]
        return x if shape == x.shape else self.moved("slice", x, shape, f" at {at}", at=at)

    def pad(self, x, low, shape):
        """Zeros around x; `low[d]` of them before dimension d."""
        return x if tuple(shape) == x.shape else self.moved("pad", x, tuple(shape), f" at {list(low)}")

    def concat(self, parts, axis):
        parts = [part for part in parts if part.shape[axis]]
        if len(parts) == 1:
            return parts[0]
        axis %= parts[0].rank
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        types = ", ".join(part.type for part in parts)
        return self.new("concat", parts, f" {', '.join(part.name for part in parts)} axis {axis}", [(shape, parts[0].element)],
                        f"{types} -> {type_of(shape, parts[0].element)}")

    def convert(self, x, element):
        """Between f32, i32 and i1, as torch.Tensor.to."""
        if x.element == element:
            return x
        return self.new("convert", [x], f" {x.name}", [(x.shape, element)], f"{x.type} -> {type_of(x.shape, element)}")

    # ---- elementwise

    def map(self, name, *operands, numbers=(), element=None):
        """An elementwise op; operands are broadcast to one shape. `element` is that of the result where it is not that of the last operand."""
        shape = broadcast_shape(*(x.shape for x in operands))
        operands = [self.fitted(x, shape) for x in operands]
        if all(x.shape != shape for x in operands):
            operands[0] = self.broadcast(operands[0], shape)
        body = f" {', '.join(x.name for x in operands)}{''.join(', ' + real(number) for number in numbers)}"
        return self.new(name, operands, body, [(shape, element or operands[-1].element)], ", ".join(x.type for x in operands),
                        numbers=tuple(numbers))

    def fitted(self, x, shape):
        """Elementwise ops repeat an operand over leading dimensions that it lacks."""
        core = x.shape
        while core and core[0] == 1 and (len(core) > len(shape) or shape[-len(core):] != core):
            core = core[1:]
        if core == shape[len(shape) - len(core):]:
            return self.reshape(x, core)
        return self.broadcast(x, shape)

    def scale(self, x, factor):
        return x if factor == 1 else self.map("scale", x, numbers=[factor])

    def shift(self, x, amount):
        return x if amount == 0 else self.map("shift", x, numbers=[amount])

    def select(self, condition, a, b):
        return self.map("select", condition, a, b, element=a.element)

    def compare(self, name, a, b):
        return self.map(name, a, b, element="i1")

    def compare_number(self, name, a, number):
        return self.compare(name, a, self.scalar(number, a.element))

    # ---- reductions and products

    def reduce(self, kind, x, axes=None, keep=False):
        """`kind` "sum", "max" or "min" over `axes` (None: all)."""
        axes = sorted({axis % x.rank for axis in axes} if axes is not None and x.rank else range(x.rank))
        if not axes:
            return x
        shape = [extent for axis, extent in enumerate(x.shape) if axis not in axes]
        y = self.moved("reduce", x, shape, f" over {axes}", kind=kind, axes=axes)
        y.line.body = f' "{kind}" {x.name} over {axes}'
        return self.reshape(y, [1 if axis in axes else extent for axis, extent in enumerate(x.shape)]) if keep else y

    def sum(self, x, axes=None, keep=False):
        return self.reduce("sum", x, axes, keep)

    def mean(self, x, axes=None, keep=False):
        total = self.sum(x, axes, keep)
        return self.scale(total, math.prod(total.shape) / math.prod(x.shape))

    def dot(self, a, b, transpose_b=False):
        """[..., M, K] times [..., K, N]; the leading dimensions are broadcast."""
        lead = broadcast_shape(a.shape[:-2], b.shape[:-2])
        a, b = self.broadcast(a, lead + a.shape[-2:]), self.broadcast(b, lead + b.shape[-2:])
        shape = a.shape[:-1] + (b.shape[-2 if transpose_b else -1],)
        return self.new("dot", [a, b], f" {a.name}, {b.name}{' transpose_b' * transpose_b}", [(shape, "f32")],
                        f"{a.type}, {b.type} -> {type_of(shape, 'f32')}")

    def matmul(self, x, weight, bias=None, transpose_b=False):
        """[..., K] times [K, N], or [N, K] with transpose_b, plus a bias of [N]."""
        shape = x.shape[:-1] + (weight.shape[0 if transpose_b else 1],)
        operands = [x, weight] + ([bias] if bias else [])
        body = f" {x.name}, {weight.name}{f' bias {bias.name}' if bias else ''}{' transpose_b' * transpose_b}"
        return self.new("matmul", operands, body, [(shape, "f32")], f"({', '.join(v.type for v in operands)}) -> {type_of(shape, 'f32')}")

    # ---- choosing

    def embedding(self, table, ids):
        shape = ids.shape + table.shape[1:]
        return self.new("embedding", [ids, table], f" {ids.name}, {table.name}", [(shape, "f32")],
                        f"({ids.type}, {table.type}) -> {type_of(shape, 'f32')}")

    def gather(self, x, ids):
        """Elements of each row (the last dimension) by their ids."""
        return self.new("gather_elements", [x, ids], f" {x.name}, {ids.name}", [(ids.shape, x.element)],
                        f"{x.type}, {ids.type} -> {type_of(ids.shape, x.element)}")

    def scatter_add(self, x, ids, extent):
        """Rows of `extent` zeros, to which elements of x are added by their ids."""
        shape = x.shape[:-1] + (extent,)
        return self.new("scatter_add_elements", [x, ids], f" {x.name}, {ids.name}", [(shape, x.element)],
                        f"{x.type}, {ids.type} -> {type_of(shape, x.element)}")

    def argsort(self, x, count=None, descending=False):
        shape = x.shape[:-1] + (count or x.shape[-1],)
        return self.new("argsort", [x], f" {x.name}{' descending' * descending}", [(shape, "i32")], f"{x.type} -> {type_of(shape, 'i32')}")

    # ---- parameters, inputs of the executor

    def get(self, name, shape):
        return self.new("get", [], f" @{quoted(name)}", [(shape, "f32")], type_of(shape, "f32"), parameter=name)

    def rng(self):
        """The state of the generator, of which a model has one."""
        if self.state is None:
            self.state = self.new("input", [], ' "rng"', [((3,), "i64")], type_of((3,), "i64"))
        return self.state

    def next_stream(self):
        self.streams += 1
        return self.streams - 1

    def dropout(self, x, rate):
        rng = self.rng()
        return self.new("dropout", [x, rng], f" {x.name}, {rng.name} rate {real(rate)} stream {self.next_stream()}", [(x.shape, "f32")],
                        f"{x.type}, {rng.type}")


def broadcast_shape(*shapes):
    """As torch.broadcast_shapes."""
    rank, result = max((len(shape) for shape in shapes), default=0), []
    for axis in range(-rank, 0):
        extents = {shape[axis] for shape in shapes if len(shape) >= -axis} - {1}
        if len(extents) > 1:
            raise ValueError(f"shapes {shapes} do not fit")
        result.append(extents.pop() if extents else 1)
    return tuple(result)
