"""The text of model.mlir: values, lines, functions. Knows the grammar of the dialect's ops, and nothing of PyTorch."""
import math
import struct


def type_of(shape, element):
    """`tensor<2x3xf32>`."""
    return "tensor<" + "".join(f"{extent}x" for extent in shape) + element + ">"


def real(number):
    """A number as MLIR reads it: with a point, or as the bits of an f64 where it is not finite."""
    number = float(number)
    if not math.isfinite(number):
        return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    digits = repr(number)
    return digits.replace("e", ".0e") if "e" in digits and "." not in digits else digits


def quoted(text):
    """A string literal."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Value:
    """A tensor of the graph: its name, shape (ints), element ("f32", "i32" or "i1"), and the line that computes it (None: an argument)."""

    def __init__(self, name, shape, element, line=None):
        self.name, self.shape, self.element, self.line = name, tuple(shape), element, line

    @property
    def type(self):
        return type_of(self.shape, self.element)

    @property
    def rank(self):
        return len(self.shape)

    def __repr__(self):
        return f"{self.name}: {self.type}"


class Line:
    """An op: `ft.NAME OPERANDS ATTRIBUTES {layer} : TYPES loc`. `operands` are Values, `details` what distinguishes it from another of its name."""

    def __init__(self, name, operands, body, types, details, layer, location):
        self.name, self.operands, self.body, self.types = name, tuple(operands), body, types
        self.details, self.layer, self.location, self.results = details, layer, location, ()

    def text(self):
        names = ", ".join(value.name for value in self.results)
        layer = f" {{layer = {quoted(self.layer)}}}" if self.layer else ""
        return f"{names} = ft.{self.name}{self.body}{layer} : {self.types}{self.location}"


class Function:
    """Lines in order. What nothing reads of them is left out when they are written."""

    def __init__(self, name):
        self.name, self.arguments, self.lines, self.results = name, [], [], []

    def live(self):
        """Of the lines, those that results need."""
        needed, kept = {id(value.line) for value in self.results if value.line}, []
        for line in reversed(self.lines):
            if id(line) in needed:
                kept.append(line)
                needed.update(id(value.line) for value in line.operands if value.line)
        return kept[::-1]

    def body(self):
        returned = f"return {', '.join(v.name for v in self.results)} : {', '.join(v.type for v in self.results)}"
        return "".join(f"    {line}\n" for line in [*(line.text() for line in self.live()), returned])


class Place:
    """Where an op comes from: the layer it belongs to, and `("file.py", 12)` or None."""

    def __init__(self, layer="", source=None):
        self.layer, self.source = layer, source

    @property
    def location(self):
        return f" loc({quoted(self.source[0])}:{self.source[1]}:0)" if self.source else ""
