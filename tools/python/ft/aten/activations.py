"""Activations."""
from ..registry import op


def activation(name, make):
    @op(name)
    def one(graph, x):
        return make(graph, graph.value(x, "f32" if graph.element == "f32" else graph.element))


def softplus_of(graph, x, threshold=20.0):
    """log(1 + e^x), with a gradient where x is large or 0."""
    small = graph.map("log", graph.shift(graph.map("exp", graph.map("minimum", x, graph.fill(threshold))), 1))
    return graph.select(graph.compare_number("gt", x, threshold), x, small)


activation("relu", lambda g, x: g.map("relu", x))
activation("silu", lambda g, x: g.map("silu", x))
activation("mish", lambda g, x: g.map("mul", x, g.map("tanh", softplus_of(g, x))))
activation("relu6", lambda g, x: g.map("clamp", x, numbers=[0, 6]))
activation("hardsigmoid", lambda g, x: g.map("clamp", g.shift(g.scale(x, 1 / 6), 0.5), numbers=[0, 1]))
activation("hardswish", lambda g, x: g.map("mul", x, g.map("clamp", g.shift(g.scale(x, 1 / 6), 0.5), numbers=[0, 1])))
activation("log_sigmoid", lambda g, x: g.scale(softplus_of(g, g.scale(x, -1)), -1))
activation("selu", lambda g, x: g.scale(elu_of(g, x, 1.6732632423543772), 1.0507009873554805))


def below_zero(graph, x):
    """min(x, 0), with all of the gradient at 0."""
    return graph.select(graph.compare_number("gt", x, 0), graph.fill(0), x)


def elu_of(graph, x, alpha):
    negative = graph.scale(graph.shift(graph.map("exp", below_zero(graph, x)), -1), alpha)
    return graph.select(graph.compare_number("gt", x, 0), x, negative)


@op("log_sigmoid_forward")
def log_sigmoid_forward(graph, x):
    return graph.scale(softplus_of(graph, graph.scale(graph.value(x), -1)), -1), None


@op("gelu")
def gelu(graph, x, approximate="none"):
    x = graph.value(x, "f32")
    return graph.new("gelu", [x], f' {x.name} approximate "{approximate}"', [(x.shape, "f32")], x.type)


@op("softplus")
def softplus(graph, x, beta=1, threshold=20):
    x = graph.scale(graph.value(x, "f32"), beta)
    return graph.scale(softplus_of(graph, x, threshold), 1 / beta)


@op("elu")
def elu(graph, x, alpha=1.0, scale=1.0, input_scale=1.0):
    x = graph.value(x, "f32")
    negative = graph.shift(graph.map("exp", graph.scale(below_zero(graph, x), input_scale)), -1)
    return graph.select(graph.compare_number("gt", x, 0), graph.scale(x, scale), graph.scale(negative, alpha * scale))


@op("celu")
def celu(graph, x, alpha=1.0):
    return elu(graph, x, alpha, 1.0, 1 / alpha)


@op("leaky_relu")
def leaky_relu(graph, x, slope=0.01):
    x = graph.value(x, "f32")
    return graph.select(graph.compare_number("gt", x, 0), x, graph.scale(x, slope))


@op("prelu", "_prelu_kernel")
def prelu(graph, x, weight):
    x, weight = graph.value(x, "f32"), graph.value(weight)
    if weight.rank == 1 and x.rank > 1:
        weight = graph.reshape(weight, [weight.shape[0]] + [1] * (x.rank - 2))
    return graph.select(graph.compare_number("gt", x, 0), x, graph.map("mul", x, weight))


@op("hardtanh")
def hardtanh(graph, x, low=-1, high=1):
    return graph.map("clamp", graph.value(x, graph.element), numbers=[low, high])


@op("glu")
def glu(graph, x, dim=-1):
    x = graph.value(x, "f32")
    half = x.shape[dim] // 2
    return graph.map("mul", graph.slice(x, dim, 0, half), graph.map("sigmoid", graph.slice(x, dim, half, 2 * half)))


@op("softshrink")
def softshrink(graph, x, lambd=0.5):
    x = graph.value(x, "f32")
    return graph.map("sub", x, graph.map("clamp", x, numbers=[-lambd, lambd]))


@op("hardshrink")
def hardshrink(graph, x, lambd=0.5):
    x = graph.value(x, "f32")
    return graph.select(graph.compare_number("gt", graph.map("abs", x), lambd), x, graph.fill(0))


@op("threshold")
def threshold(graph, x, bound, value):
    x = graph.value(x, "f32")
    return graph.select(graph.compare_number("gt", x, bound), x, graph.fill(value))


@op("softmax", "_softmax", "_safe_softmax")
def softmax(graph, x, dim, dtype=None, **_):
    x = graph.value(x, "f32")
    if x.rank == 0:
        return graph.fill(1)
    last = graph.swap(x, dim % x.rank, x.rank - 1)
    return graph.swap(softmax_of_rows(graph, last), dim % x.rank, x.rank - 1)


def softmax_of_rows(graph, x):
    return graph.new("softmax", [x], f" {x.name}", [(x.shape, "f32")], x.type)


@op("log_softmax", "_log_softmax")
def log_softmax(graph, x, dim, dtype=None, **_):
    x = graph.value(x, "f32")
    return graph.map("sub", x, logsumexp_of(graph, x, [dim]))


def logsumexp_of(graph, x, dims):
    """With the dimensions kept, of one element. The largest is taken off first, and no gradient goes through it."""
    largest = graph.map("stop_gradient", graph.reduce("max", x, dims, keep=True))
    return graph.map("add", graph.map("log", graph.sum(graph.map("exp", graph.map("sub", x, largest)), dims, keep=True)), largest)


@op("logsumexp")
def logsumexp(graph, x, dim, keepdim=False):
    x = graph.value(x, "f32")
    result = logsumexp_of(graph, x, dim if isinstance(dim, (list, tuple)) else [dim])
    return graph.reshape(result, graph.shape)
