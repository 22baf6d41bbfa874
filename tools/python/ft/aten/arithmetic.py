"""Elementwise arithmetic, comparisons, logic, elementary functions."""
import functools
import math

import torch

from ..errors import Unsupported
from ..registry import op, refuse
from .integers import check_arithmetic, check_product
from .recognized import product_of

RANK = {"i1": 0, "i32": 1, "f32": 2}


def is_number(x):
    return isinstance(x, (int, float, bool))


def common(graph, *operands, element=None):
    """Values of one element: `element`, or the one that PyTorch promotes to."""
    kinds = [graph.value(x).element if not is_number(x) else None for x in operands]
    known = [kind for kind in kinds if kind]
    for x, kind in zip(operands, kinds):
        if kind is None:
            wanted = "i1" if isinstance(x, bool) else "i32" if isinstance(x, int) else "f32"
            if not known or RANK[wanted] > max(RANK[k] for k in known):
                known.append(wanted)
    element = element or max(known, key=RANK.get)
    return [graph.value(x, element) for x in operands]


# ---- two operands

@op("add")
def add(graph, x, y, alpha=1):
    check_arithmetic(graph)
    if is_number(y) and graph.element != "i1":
        return graph.shift(graph.value(x, graph.element), y * alpha)
    if is_number(x):
        return graph.shift(graph.scale(graph.value(y, graph.element), alpha), x)
    x, y = common(graph, x, y, element=graph.element)
    if graph.element == "i1":
        return graph.map("or", x, y)
    return graph.map("add", x, graph.scale(y, alpha))


@op("sub")
def sub(graph, x, y, alpha=1):
    check_arithmetic(graph)
    if is_number(y):
        return graph.shift(graph.value(x, graph.element), -y * alpha)
    x, y = common(graph, x, y, element=graph.element)
    return graph.map("sub", x, graph.scale(y, alpha))


@op("rsub")
def rsub(graph, x, y, alpha=1):
    return sub(graph, graph.value(y, graph.element), graph.value(x, graph.element), alpha)


@op("mul")
def mul(graph, x, y):
    check_product(graph, x, y)
    if is_number(x):
        x, y = y, x
    if is_number(y) and graph.element != "i1":
        return graph.scale(graph.value(x, graph.element), y)
    x, y = common(graph, x, y, element=graph.element)
    if graph.element == "i1":
        return graph.map("and", x, y)
    return product_of(graph, x, y) or graph.map("mul", x, y)


@op("div")
def div(graph, x, y, rounding_mode=None):
    if rounding_mode is None:
        x = graph.value(x, "f32")
        return graph.scale(x, 1 / y) if is_number(y) and y else graph.map("div", x, graph.value(y, "f32"))
    if graph.element == "i32":
        return whole_quotient(graph, x, y, rounding_mode)
    quotient = graph.map("div", *common(graph, x, y, element="f32"))
    return graph.map("floor", quotient) if rounding_mode == "floor" else trunc(graph, quotient)


def whole_quotient(graph, x, y, mode):
    if not is_number(y):
        raise Unsupported("integers are divided by numbers only; convert them to floats")
    x = graph.value(x, "i32")
    if mode == "floor":
        return graph.map("floor_div", x, numbers=[y])
    magnitude = graph.map("floor_div", graph.map("abs", x), numbers=[abs(y)])
    return graph.map("mul", magnitude, graph.scale(graph.map("sign", x), 1 if y > 0 else -1))


@op("floor_divide", "__floordiv__")
def floor_divide(graph, x, y):
    return div(graph, x, y, "floor")


@op("remainder")
def remainder(graph, x, y):
    if graph.element == "i32":
        if not is_number(y):
            raise Unsupported("a remainder of integers is by a number only; convert them to floats")
        return graph.map("remainder", graph.value(x, "i32"), numbers=[y])
    x, y = common(graph, x, y, element="f32")
    return graph.map("sub", x, graph.map("mul", y, graph.map("floor", graph.map("div", x, y))))


@op("fmod")
def fmod(graph, x, y):
    x, y = common(graph, x, y, element="f32")
    result = graph.map("sub", x, graph.map("mul", y, trunc(graph, graph.map("div", x, y))))
    return graph.convert(result, graph.element)


@op("pow")
def power(graph, x, y):
    if is_number(y):
        x = graph.value(x, graph.element)
        if y == 0:
            return graph.broadcast(graph.scalar(1, x.element), x.shape)
        named = {1: lambda: x, 2: lambda: graph.map("square", x), -1: lambda: graph.map("reciprocal", x), 0.5: lambda: graph.map("sqrt", x),
                 -0.5: lambda: graph.map("rsqrt", x), 3: lambda: graph.map("mul", x, graph.map("square", x))}
        if y in named:
            return named[y]()
        if x.element != "f32":
            raise Unsupported("integers are raised to 0 to 3 only; convert them to floats")
        return graph.map("pow", x, numbers=[y])
    if is_number(x):
        if x <= 0:
            raise Unsupported("powers of numbers that are not positive are not taken")
        return graph.convert(graph.map("exp", graph.scale(graph.value(y, "f32"), math.log(x))), graph.element)
    x, y = common(graph, x, y, element="f32")
    zero = graph.compare_number("eq", x, 0)
    power = graph.map("exp", graph.map("mul", y, graph.map("log", graph.select(zero, graph.fill(1), x))))
    result = graph.select(zero, graph.fill(0), power)
    # Where x is 0 it has no logarithm: a value and a derivative for each kind of y. What is not chosen computes with 1, so that nothing is infinite.
    for cases, chosen in (((("lt", 0),), lambda v: graph.map("reciprocal", v)), ((("eq", 0),), lambda v: graph.fill(1)),
                          ((("gt", 0), ("lt", 1)), lambda v: graph.map("sqrt", v)), ((("eq", 1),), lambda v: v)):
        here = functools.reduce(lambda a, b: graph.map("and", a, b), (graph.compare_number(name, y, bound) for name, bound in cases), zero)
        result = graph.select(here, chosen(graph.select(here, x, graph.fill(1))), result)
    return graph.convert(graph.broadcast(result, graph.shape), graph.element)


@op("maximum", "fmax")
def maximum(graph, x, y):
    return graph.map("maximum", *common(graph, x, y, element=graph.element))


@op("minimum", "fmin")
def minimum(graph, x, y):
    return graph.map("minimum", *common(graph, x, y, element=graph.element))


@op("clamp")
def clamp(graph, x, low=None, high=None, min=None, max=None):
    x, low, high = graph.value(x, graph.element), low if min is None else min, high if max is None else max
    for bound, names, shared in ((low, ("le", "lt"), "maximum"), (high, ("ge", "gt"), "minimum")):
        if bound is None:
            continue
        part = gradient_at_ends(not isinstance(bound, (int, float)))
        bound = graph.value(bound, x.element)
        if part in (0, 1):
            x = graph.select(graph.compare(names[part == 1], x, bound), *(graph.broadcast(v, graph.shape) for v in (bound, x)))
        else:
            x = graph.map(shared, *(graph.broadcast(v, graph.shape) for v in (x, bound)))
    return x


@functools.cache
def gradient_at_ends(is_tensor):
    """Of torch.clamp where x is the bound: versions of PyTorch differ."""
    with torch.enable_grad():
        x = torch.zeros(1, requires_grad=True)
        x.clamp(min=torch.zeros(1) if is_tensor else 0.0).sum().backward()
    return float(x.grad)


@op("clamp_min")
def clamp_min(graph, x, low):
    return clamp(graph, x, low)


@op("clamp_max")
def clamp_max(graph, x, high):
    return clamp(graph, x, None, high)


@op("where")
def where(graph, condition, x, y):
    x, y = common(graph, x, y, element=graph.element)
    return graph.select(graph.value(condition, "i1"), x, y)


@op("masked_fill")
def masked_fill(graph, x, mask, value):
    return graph.select(graph.value(mask, "i1"), graph.value(value, graph.element), graph.value(x, graph.element))


@op("lerp")
def lerp(graph, x, y, weight):
    x, y = common(graph, x, y)
    return graph.map("add", x, graph.map("mul", graph.map("sub", y, x), graph.value(weight, "f32")))


@op("addcmul")
def addcmul(graph, x, a, b, value=1):
    return graph.map("add", graph.value(x), graph.scale(graph.map("mul", graph.value(a), graph.value(b)), value))


@op("addcdiv")
def addcdiv(graph, x, a, b, value=1):
    return graph.map("add", graph.value(x), graph.scale(graph.map("div", graph.value(a), graph.value(b)), value))


# ---- comparisons and logic

def comparison(name):
    @op(name)
    def compare(graph, x, y):
        x, y = common(graph, x, y)
        if x.element == "i1":
            x, y = graph.convert(x, "i32"), graph.convert(y, "i32")
        return graph.compare(name, x, y)


for each in ("eq", "ne", "lt", "le", "gt", "ge"):
    comparison(each)


def logic(name, *names):
    @op(*names)
    def both(graph, x, y):
        if graph.element != "i1":
            raise Unsupported("bits of integers are not taken; truth values are")
        x, y = graph.value(x, "i1"), graph.value(y, "i1")
        if name == "xor":
            either, both = graph.map("or", x, y), graph.map("and", x, y)
            return graph.map("and", either, graph.map("not", both))
        return graph.map(name, x, y)


logic("and", "logical_and", "bitwise_and", "__and__")
logic("or", "logical_or", "bitwise_or", "__or__")
logic("xor", "logical_xor", "bitwise_xor", "__xor__")


@op("logical_not", "bitwise_not")
def logical_not(graph, x):
    if graph.element != "i1":
        return graph.shift(graph.scale(graph.value(x), -1), -1)
    return graph.map("not", graph.value(x, "i1"))


@op("isnan")
def isnan(graph, x):
    x = graph.value(x, "f32")
    return graph.compare("ne", x, x)


@op("isinf")
def isinf(graph, x):
    return graph.compare_number("eq", graph.map("abs", graph.value(x, "f32")), math.inf)


@op("isfinite")
def isfinite(graph, x):
    return graph.compare_number("lt", graph.map("abs", graph.value(x, "f32")), math.inf)


@op("nan_to_num")
def nan_to_num(graph, x, nan=None, posinf=None, neginf=None):
    x, largest = graph.value(x, "f32"), 3.4028234663852886e38
    x = graph.select(graph.compare("eq", x, x), x, graph.fill(nan or 0))
    x = graph.select(graph.compare_number("eq", x, math.inf), graph.fill(largest if posinf is None else posinf), x)
    return graph.select(graph.compare_number("eq", x, -math.inf), graph.fill(-largest if neginf is None else neginf), x)


# ---- one operand

def same(name, *names):
    @op(*(names or [name]))
    def one(graph, x):
        return graph.map(name, graph.value(x, graph.element))


for each in ("neg", "abs", "sign", "exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "sigmoid", "erf", "reciprocal", "square"):
    same(each)
same("stop_gradient", "detach")


def formula(name, make):
    @op(name)
    def one(graph, x):
        return make(graph, graph.value(x, graph.element))


formula("positive", lambda g, x: x)
formula("expm1", lambda g, x: g.shift(g.map("exp", x), -1))
formula("log1p", lambda g, x: g.map("log", g.shift(x, 1)))
formula("exp2", lambda g, x: g.map("exp", g.scale(x, math.log(2))))
formula("log2", lambda g, x: g.scale(g.map("log", x), 1 / math.log(2)))
formula("log10", lambda g, x: g.scale(g.map("log", x), 1 / math.log(10)))
formula("tan", lambda g, x: g.map("div", g.map("sin", x), g.map("cos", x)))
formula("erfc", lambda g, x: g.scale(g.map("normal_cdf", g.scale(x, -math.sqrt(2))), 2))
formula("sinh", lambda g, x: g.scale(g.map("sub", g.map("exp", x), g.map("exp", g.scale(x, -1))), 0.5))
formula("cosh", lambda g, x: g.scale(g.map("add", g.map("exp", x), g.map("exp", g.scale(x, -1))), 0.5))
formula("asinh", lambda g, x: g.map("mul", g.map("sign", x), g.map("log", g.map(
    "add", g.map("abs", x), g.map("sqrt", g.shift(g.map("square", x), 1))))))
formula("acosh", lambda g, x: g.map("log", g.map("add", x, g.map("sqrt", g.shift(g.map("square", x), -1)))))
formula("atanh", lambda g, x: g.scale(g.map("log", g.map("div", g.shift(x, 1), g.shift(g.scale(x, -1), 1))), 0.5))
formula("frac", lambda g, x: g.map("sub", x, trunc(g, x)))


@op("floor")
def floor(graph, x):
    x = graph.value(x)
    return graph.map("floor", x) if x.element == "f32" else x


@op("ceil")
def ceil(graph, x):
    x = graph.value(x)
    return graph.scale(graph.map("floor", graph.scale(x, -1)), -1) if x.element == "f32" else x


@op("trunc", "fix")
def trunc(graph, x):
    x = graph.value(x)
    return graph.map("mul", graph.map("sign", x), graph.map("floor", graph.map("abs", x))) if x.element == "f32" else x


@op("round")
def rounded(graph, x, decimals=0):
    """To the nearest whole number, halves to even ones."""
    x = graph.scale(graph.value(x, "f32"), 10.0 ** decimals)
    up = graph.map("floor", graph.shift(x, 0.5))
    is_half = graph.compare("eq", graph.map("sub", up, x), graph.fill(0.5))
    halved = graph.scale(up, 0.5)
    is_odd = graph.compare("ne", graph.map("floor", halved), halved)
    return graph.scale(graph.map("sub", up, graph.convert(graph.map("and", is_half, is_odd), "f32")), 10.0 ** -decimals)


refuse("there is no such function of the dialect; write it with others", """
    acos asin atan atan2 lgamma digamma erfinv i0 hypot nextafter gcd lcm heaviside
""")
refuse("complex numbers are not taken; say rotations with cosines and sines", """
    view_as_complex view_as_real _conj polar complex real imag angle _fft_r2c _fft_c2c _fft_c2r
""")
