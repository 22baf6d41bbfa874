"""What modules write out with several ops, though the dialect has one for it: it is shorter so, and in 16 bits it is rounded once."""
import math

from ..text import real


def product_of(graph, a, b):
    """a * b, as one op of the dialect where it is the last step of one; else None."""
    return as_rms_norm(graph, a, b) or as_gelu(graph, a, b) or as_gelu(graph, b, a)


def made_by(value, *names):
    return value.line if value.line is not None and value.line.name in names else None


def through(value, name):
    return value.line.operands[0] if made_by(value, name) else value


def number_of(line):
    return line.details["numbers"][0]


def rms_norm_of(graph, rows, weight, eps):
    return graph.new("rms_norm", [rows, weight], f" {rows.name}, {weight.name} eps {real(eps)}", [(rows.shape, "f32")],
                     f"{rows.type}, {weight.type}")


def as_rms_norm(graph, a, b):
    """w * (x * rsqrt(mean(x^2) + eps)), as transformers writes it, is one op; else None."""
    for weight, scaled in ((a, b), (b, a)):
        if weight.rank == 1 and scaled.rank > 1 and weight.shape[0] == scaled.shape[-1] and (found := inverse_rms(scaled)):
            return rms_norm_of(graph, found[0], weight, found[1])
    return None


def inverse_rms(scaled):
    """(x, eps) of x * rsqrt(mean(x^2, -1) + eps)."""
    if not (line := made_by(scaled, "mul")):
        return None
    for x, factor in (line.operands, line.operands[::-1]):
        root = made_by(through(factor, "broadcast"), "rsqrt")
        shifted = root and made_by(root.operands[0], "shift")
        scale = shifted and made_by(through(shifted.operands[0], "reshape"), "scale")
        total = scale and made_by(through(scale.operands[0], "reshape"), "reduce")
        squared = total and made_by(total.operands[0], "square")
        if squared and squared.operands[0] is x and total.details["axes"] == [x.rank - 1] and total.details["kind"] == "sum":
            if abs(number_of(scale) * x.shape[-1] - 1) < 1e-9:
                return x, number_of(shifted)
    return None


def as_gelu(graph, a, b):
    """x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), GPT-2's GELU."""
    half, shifted = made_by(a, "scale"), made_by(b, "shift")
    bent = shifted and number_of(shifted) == 1 and made_by(shifted.operands[0], "tanh")
    scaled = bent and made_by(bent.operands[0], "scale")
    inner = scaled and abs(number_of(scaled) - math.sqrt(2 / math.pi)) < 1e-6 and made_by(scaled.operands[0], "add")
    if not half or number_of(half) != 0.5 or not inner:
        return None
    x, cubic = half.operands[0], made_by(inner.operands[1], "scale")
    cube = cubic and abs(number_of(cubic) - 0.044715) < 1e-9 and made_by(cubic.operands[0], "mul")
    square = cube and made_by(cube.operands[1], "square")
    if not square or inner.operands[0] is not x or cube.operands[0] is not x or square.operands[0] is not x:
        return None
    return graph.new("gelu", [x], f' {x.name} approximate "tanh"', [(x.shape, "f32")], x.type)
