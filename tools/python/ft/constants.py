"""Tensors that no input reaches, said in model.mlir: as a pattern where their values show one; small ones by their elements, larger ones by the ops
that PyTorch made them with, or else by their elements.

Floats that are not one number are f32 whatever --mixed-precision says: they are made in a composite, whose result is a statistic.
"""
import hashlib

import torch

from .errors import Unsupported
from .patterns import pattern_of
from .text import Function, Value, quoted, type_of

# Up to so many elements are said one by one; up to so many as a table rather than by the ops that made them.
SHORT, SMALL = 4, 256


class Constants:
    def __init__(self, graph):
        self.graph, self.origins, self.said, self.dense = graph, {}, {}, {}

    def remember(self, tensor, node, args, options):
        self.origins.setdefault(id(tensor), (tensor, node, args, options))

    def say(self, tensor):
        """A Value of it, one for all tensors that are equal inside a function."""
        if tensor.is_meta:
            raise Unsupported("it reads a tensor without elements (on the device meta); make buffers where they have some")
        data = hashlib.sha256(tensor.detach().cpu().reshape(-1).clone(memory_format=torch.contiguous_format).view(torch.uint8).numpy()).digest()
        key = id(self.graph.function), tensor.dtype, tuple(tensor.shape), data
        if key not in self.said:
            self.said[key] = self.new(tensor)
        return self.said[key]

    # ---- ways to say one

    def new(self, tensor):
        graph, plain = self.graph, normal(tensor)
        if plain.numel() == 0:
            raise Unsupported("tensors without elements are not taken")
        small, shape = without_repetition(plain), tuple(tensor.shape)
        if small.numel() == 1:
            return graph.broadcast(graph.scalar(small.item(), element(small)), shape)
        if (pattern := pattern_of(small)) is not None:
            return self.in_function(small.dtype, lambda: graph.broadcast(pattern(graph), shape), shape)
        if small.numel() <= SHORT:
            return self.in_function(small.dtype, lambda: graph.broadcast(self.elements(small), shape), shape)
        if small.numel() > SMALL and (value := self.by_origin(tensor)) is not None:
            return value
        return self.in_function(small.dtype, lambda: graph.broadcast(self.table(small), shape), shape)

    def elements(self, tensor):
        """Runs of equal elements, one after the other."""
        graph, flat, parts = self.graph, tensor.flatten(), []
        values, counts = torch.unique_consecutive(flat, return_counts=True)
        for number, count in zip(values.tolist(), counts.tolist()):
            parts.append(graph.broadcast(graph.scalar(number, element(flat)), (count,)))
        return graph.reshape(graph.concat(parts, 0), tensor.shape)

    def by_origin(self, tensor):
        """By the ops that it was computed with; of integers only by integers, which are exact."""
        if id(tensor) not in self.origins:
            return None
        _, node, args, options = self.origins[id(tensor)]
        tensors = [arg for arg in torch.utils._pytree.tree_leaves((args, options)) if isinstance(arg, torch.Tensor)]
        if not tensors or not tensor.is_floating_point() and any(arg.is_floating_point() for arg in tensors):
            return None
        try:
            return self.in_function(tensor.dtype, lambda: self.graph.emit(node, args, options), tuple(tensor.shape))
        except Unsupported:
            return None

    def in_function(self, dtype, make, shape):
        """A float is made in a composite, so that 16 bits round none of what it is made of."""
        graph = self.graph
        if not dtype.is_floating_point or graph.function.name != "forward":
            return make()
        outer, graph.function = graph.function, Function(f"constant_{len(graph.functions)}")
        inner, place = graph.function, graph.place
        try:
            inner.results = [make()]
        finally:
            graph.function, graph.place = outer, place
        inner.name = f"constant_{len(graph.functions)}"
        graph.functions.append(inner)
        given = inner.arguments
        body, types = f" @{inner.name}({', '.join(v.name for v in given)})", ", ".join(v.type for v in given)
        return graph.new("call", given, body, [(shape, "f32")], f"({types}) -> {inner.results[0].type}", statistic=True)

    def table(self, tensor):
        """By its elements, an argument of the model; a composite takes it as an operand."""
        function = self.graph.function
        name = next((name for name, other in self.dense.items() if other.dtype == tensor.dtype and torch.equal(other, tensor)), f"table_{len(self.dense)}")
        self.dense[name] = tensor
        value = Value(f"%{name}", tensor.shape, element(tensor))
        if function.name != "forward" and name not in [each.name[1:] for each in function.arguments]:
            function.arguments.append(value)
        return self.graph.map("stop_gradient", value) if tensor.is_floating_point() else value

    def arguments(self, live):
        """Those of the tables that `live` lines read, as arguments of the model."""
        read = {value.name[1:] for line in live for value in line.operands if value.line is None}
        return [f"%{name}: {type_of(tensor.shape, element(tensor))} {{ft.input = {quoted(name)}, ft.constant = {elements_of(tensor)}}}"
                for name, tensor in self.dense.items() if name in read]


def elements_of(tensor):
    """`dense<...> : type`: bytes in hexadecimal, or words of truth values."""
    kind = type_of(tensor.shape, element(tensor))
    if tensor.dtype == torch.bool:
        words = lambda rows: f"[{', '.join(map(words, rows))}]" if isinstance(rows, list) else str(rows).lower()
        return f"dense<{words(tensor.tolist())}> : {kind}"
    data = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes().hex().upper()
    return f'dense<"0x{data}"> : {kind}'


def element(tensor):
    return "i1" if tensor.dtype == torch.bool else "f32" if tensor.is_floating_point() else "i32"


def normal(tensor):
    tensor = tensor.detach().cpu()
    if tensor.is_floating_point():
        return tensor.float()
    return tensor if tensor.dtype == torch.bool else tensor.clamp(-2 ** 31, 2 ** 31 - 1).to(torch.int32)


def without_repetition(tensor):
    """The tensor with one element in each dimension along which nothing changes."""
    for axis in range(tensor.dim()):
        first = tensor.narrow(axis, 0, 1)
        if tensor.shape[axis] > 1 and torch.equal(first.expand_as(tensor), tensor):
            tensor = first
    return tensor
