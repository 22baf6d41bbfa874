"""Losses."""
import math

from ..errors import Unsupported
from ..registry import op, refuse
from .activations import logsumexp_of

NONE, MEAN, SUM = 0, 1, 2


def classes_last(graph, x):
    """[N, C, ...] as [N, ..., C]."""
    return graph.transpose(x, [0] + list(range(2, x.rank)) + [1]) if x.rank > 2 else x


def left_out(graph, targets, ignore_index):
    """Targets in which what is left out is negative, as ft.cross_entropy has it."""
    if ignore_index < 0:
        return targets
    return graph.select(graph.compare_number("eq", targets, ignore_index), graph.scalar(-100, "i32"), targets)


@op("cross_entropy_loss")
def cross_entropy(graph, x, targets, weight=None, reduction=MEAN, ignore_index=-100, label_smoothing=0.0):
    x, targets = graph.value(x, "f32"), graph.value(targets)
    if targets.element == "f32":
        return with_probabilities(graph, x, targets, weight, reduction, label_smoothing)
    targets = left_out(graph, targets, ignore_index)
    logits = classes_last(graph, x)
    if reduction == MEAN and weight is None and not label_smoothing:
        logits, targets = before_flattening(graph, logits, targets)
        if logits.rank == 1:
            logits, targets = graph.reshape(logits, (1,) + logits.shape), graph.reshape(targets, (1,))
        return graph.new("cross_entropy", [logits, targets], f" {logits.name}, {targets.name}", [((), "f32")],
                         f"({logits.type}, {targets.type}) -> tensor<f32>")
    log_probabilities = graph.map("sub", logits, logsumexp_of(graph, logits, [-1]))
    return negative_likelihood(graph, log_probabilities, targets, weight, reduction, label_smoothing)


def before_flattening(graph, logits, targets):
    """Logits [B T, V] and targets [B T] that were [B, T, V] and [B, T] before."""
    if logits.line is not None and targets.line is not None and logits.line.name == targets.line.name == "reshape":
        wide, ids = logits.line.operands[0], targets.line.operands[0]
        if wide.shape[:-1] == ids.shape and wide.shape[-1] == logits.shape[-1]:
            return wide, ids
    return logits, targets


@op("nll_loss", "nll_loss_nd", "nll_loss_forward", "nll_loss2d_forward", "nll_loss2d")
def nll_loss(graph, x, targets, weight=None, reduction=MEAN, ignore_index=-100):
    targets = left_out(graph, graph.value(targets, "i32"), ignore_index)
    loss = negative_likelihood(graph, classes_last(graph, graph.value(x, "f32")), targets, weight, reduction, 0.0)
    return (loss, None) if "forward" in str(graph.node.target) else loss


def negative_likelihood(graph, logp, targets, weight, reduction, smoothing):
    """Of log probabilities [..., C]; negative targets count for nothing."""
    counted = graph.compare_number("ge", targets, 0)
    ids = graph.reshape(graph.map("relu", targets), targets.shape + (1,))
    picked = graph.reshape(graph.gather(logp, ids), targets.shape)
    ones = graph.broadcast(graph.fill(1), targets.shape)
    weights = None if weight is None else graph.value(weight, "f32")
    share = ones if weights is None else graph.gather(weights, graph.reshape(graph.map("relu", targets), [math.prod(targets.shape)]))
    share = graph.select(counted, graph.reshape(share, targets.shape), graph.fill(0))
    loss = graph.map("mul", graph.scale(picked, -1), share)
    divisor = graph.sum(share)
    if smoothing:
        spread = logp if weights is None else graph.map("mul", logp, weights)
        uniform = graph.scale(graph.sum(spread, [-1]), -smoothing / logp.shape[-1])
        uniform = graph.select(counted, uniform, graph.fill(0))
        loss = graph.map("add", graph.scale(loss, 1 - smoothing), uniform)
    return reduced(graph, loss, reduction, divisor)


def with_probabilities(graph, x, targets, weight, reduction, smoothing):
    logits, targets = classes_last(graph, x), classes_last(graph, targets)
    if smoothing:
        targets = graph.shift(graph.scale(targets, 1 - smoothing), smoothing / logits.shape[-1])
    logp = graph.map("sub", logits, logsumexp_of(graph, logits, [-1]))
    terms = graph.map("mul", logp, targets)
    terms = terms if weight is None else graph.map("mul", terms, graph.value(weight))
    loss = graph.scale(graph.sum(terms, [-1]), -1)
    return reduced(graph, loss, reduction, graph.fill(math.prod(loss.shape)))


def reduced(graph, loss, reduction, divisor=None):
    if reduction == NONE:
        return loss
    if divisor is None or reduction == SUM:
        return graph.sum(loss) if reduction == SUM else graph.mean(loss)
    return graph.map("div", graph.sum(loss), divisor)


@op("mse_loss")
def mse_loss(graph, x, y, reduction=MEAN):
    return reduced(graph, graph.map("square", graph.map("sub", graph.value(x, "f32"), graph.value(y, "f32"))), reduction)


@op("l1_loss")
def l1_loss(graph, x, y, reduction=MEAN):
    return reduced(graph, graph.map("abs", graph.map("sub", graph.value(x, "f32"), graph.value(y, "f32"))), reduction)


@op("binary_cross_entropy_with_logits")
def bce_with_logits(graph, x, y, weight=None, pos_weight=None, reduction=MEAN):
    """max(x, 0) - x y + log(1 + e^-|x|), with weights of what is positive."""
    from .activations import softplus_of
    x, y = graph.value(x, "f32"), graph.value(y, "f32")
    loss = graph.map("mul", graph.shift(graph.scale(y, -1), 1), x)
    tail = softplus_of(graph, graph.scale(x, -1))
    if pos_weight is not None:
        tail = graph.map("mul", tail, graph.shift(graph.map("mul", y, graph.shift(graph.value(pos_weight), -1)), 1))
    loss = graph.map("add", loss, tail)
    return reduced(graph, loss if weight is None else graph.map("mul", loss, graph.value(weight)), reduction)


@op("binary_cross_entropy")
def bce(graph, x, y, weight=None, reduction=MEAN):
    x, y = graph.value(x, "f32"), graph.value(y, "f32")
    stopped = lambda v: graph.map("stop_gradient", v)
    log = lambda v: graph.map("maximum", graph.map("log", stopped(v)), graph.fill(-100))
    one_less = lambda v: graph.shift(graph.scale(v, -1), 1)
    of_one, of_zero = log(x), log(one_less(x))
    loss = graph.scale(graph.map("add", graph.map("mul", stopped(y), of_one), graph.map("mul", stopped(one_less(y)), of_zero)), -1)
    # PyTorch's derivatives, which stay finite: (x - y) / max(x (1 - x), 1e-12) by x, log(1 - x) - log(x) by y.
    variance = graph.map("maximum", graph.map("mul", x, one_less(x)), graph.fill(1e-12))
    by_x = graph.map("div", graph.map("sub", x, y), variance)
    finite = graph.compare("lt", graph.map("abs", by_x), graph.broadcast(graph.fill(math.inf), by_x.shape))  # not where fp16 has no 1e-12
    by_x = graph.select(finite, by_x, graph.scale(graph.map("sub", x, y), 6e4))
    for v, derivative in ((x, by_x), (y, graph.map("sub", of_zero, of_one))):
        loss = graph.map("add", loss, graph.map("mul", graph.map("sub", v, stopped(v)), stopped(derivative)))
    return reduced(graph, loss if weight is None else graph.map("mul", loss, graph.value(weight)), reduction)


refuse("this loss is not taken; write it with sums and elementwise ops", """
    ctc_loss _ctc_loss multi_margin_loss multilabel_margin_loss multilabel_margin_loss_forward
""")
