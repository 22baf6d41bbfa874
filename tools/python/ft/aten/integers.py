"""Integers of the dialect have 32 bits; PyTorch's have 64, or 8 and 16 that wrap."""
import math

import torch

from ..errors import Unsupported
from ..text import Value

SAME = {"reshape", "broadcast", "transpose", "slice", "neg", "abs", "stop_gradient"}


def check_arithmetic(graph):
    dtype = getattr(graph.output, "dtype", None)
    if dtype in (torch.uint8, torch.int8, torch.int16):
        raise Unsupported(f"arithmetic of {dtype} wraps in PyTorch, and not here; convert it to int64 before")


def check_product(graph, *factors):
    check_arithmetic(graph)
    if getattr(graph.output, "dtype", None) != torch.int64:
        return
    sizes = [magnitude(x) for x in factors]
    largest = max((size for size in sizes if size is not None), default=0)
    if (None in sizes and largest >= 2**15) or (None not in sizes and math.prod(sizes) >= 2**31):
        raise Unsupported(f"a product by {largest:.0f} may pass 32 bits, which integers have here; compute it in the data, or in float64 outside")


def magnitude(x):
    """The largest that an integer can be, by what it is made of; None where data says it."""
    if isinstance(x, torch.Tensor):
        whole = x.numel() > 0 and (x.dtype == torch.bool or not x.is_floating_point())
        return int(x.to(torch.int64).abs().max()) if whole else None
    if not isinstance(x, Value):
        return abs(x)
    if x.element == "i1":
        return 1
    return magnitude_of(x.line, x) if x.line is not None else None


def magnitude_of(line, x):
    known = {"fill": lambda: abs(line.details["number"]), "iota": lambda: x.shape[0] - 1}
    if line.name in known:
        return known[line.name]()
    sizes = [magnitude(operand) for operand in line.operands[line.name == "select":]]
    if None in sizes:
        return None
    numbers = [abs(number) for number in line.details.get("numbers", ())]
    if line.name in SAME or (line.name == "convert" and (line.operands[0].element != "f32" or is_filled(line.operands[0]))):
        return sizes[0]
    combined = {"scale": math.prod, "mul": math.prod, "shift": sum, "add": sum, "sub": sum, "select": max}
    return combined[line.name](sizes + numbers) if line.name in combined else None


def is_filled(x):
    """Whether a float is one number everywhere."""
    while x.line is not None and x.line.name in SAME and len(x.line.operands) == 1:
        x = x.line.operands[0]
    return x.line is not None and x.line.name == "fill"
