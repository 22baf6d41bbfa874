"""Convolutions that are products: kernels as wide as their steps (patches), of one element, and depthwise in one dimension."""
import math

from ..errors import Unsupported
from ..registry import op, refuse

ADVICE = "convolutions of one group are taken where kernel equals stride (without dilation) or is 1 x 1, others where they are depthwise in one dimension"


def each(numbers, rank):
    numbers = [numbers] if isinstance(numbers, int) else list(numbers)
    return numbers * rank if len(numbers) == 1 else numbers


@op("convolution")
def convolution(graph, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups, *_):
    if transposed:
        raise Unsupported(ADVICE)
    return convolved(graph, x, weight, bias, stride, padding, dilation, groups)


@op("conv1d", "conv2d", "conv3d")
def convolved(graph, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    x, weight = graph.value(x, "f32"), graph.value(weight)
    rank = weight.rank - 2
    if x.rank == rank + 1:
        raise Unsupported("convolutions without a batch are not taken")
    kernel = list(weight.shape[2:])
    stride, dilation = each(stride, rank), each(dilation, rank)
    if isinstance(padding, str):
        total = [d * (k - 1) for d, k in zip(dilation, kernel)] if padding == "same" else [0] * rank
        low, high = [t // 2 for t in total], [t - t // 2 for t in total]
    else:
        low = high = each(padding, rank)
    depthwise = groups == x.shape[1] and weight.shape[1] == 1 and rank == 1
    patches = groups == 1 and kernel == stride and all(d == 1 or k == 1 for d, k in zip(dilation, kernel))
    points = groups == 1 and all(k == 1 for k in kernel)
    if not (depthwise or patches or points):
        raise Unsupported(f"kernel {kernel}, stride {stride}, groups {groups}{f', dilation {dilation}' if any(d != 1 for d in dilation) else ''}: {ADVICE}")
    x = padded(graph, x, low, high)
    if depthwise:
        y = by_shifts(graph, x, weight, stride[0], dilation[0])
    else:
        y = by_product(graph, points_of(graph, x, stride) if points else x, weight, kernel)
    return y if bias is None else graph.map("add", y, graph.reshape(graph.value(bias), (weight.shape[0],) + (1,) * rank))


def padded(graph, x, low, high):
    shape = list(x.shape[:2]) + [extent + a + b for extent, a, b in zip(x.shape[2:], low, high)]
    return graph.pad(x, [0, 0, *low], shape) if any(low) or any(high) else x


def points_of(graph, x, stride):
    from .shapes import strided
    for axis, step in enumerate(stride):
        x = strided(graph, x, axis + 2, step)
    return x


def by_product(graph, x, weight, kernel):
    """Patches [B, places, C * kernel] times the kernels."""
    batch, channels = x.shape[:2]
    places = [extent // k for extent, k in zip(x.shape[2:], kernel)]
    for axis, (count, k) in enumerate(zip(places, kernel)):
        x = graph.slice(x, axis + 2, 0, count * k)
    if any(k > 1 for k in kernel):
        x = graph.reshape(x, [batch, channels] + [extent for pair in zip(places, kernel) for extent in pair])
        rank = len(kernel)
        order = [0] + [2 + 2 * i for i in range(rank)] + [1] + [3 + 2 * i for i in range(rank)]
        x = graph.transpose(x, order)
    else:
        x = graph.transpose(x, [0] + list(range(2, x.rank)) + [1])
    x = graph.reshape(x, [batch, math.prod(places), channels * math.prod(kernel)])
    y = graph.matmul(x, graph.reshape(weight, (weight.shape[0], channels * math.prod(kernel))), transpose_b=True)
    return graph.reshape(graph.transpose(y, [0, 2, 1]), [batch, weight.shape[0]] + places)


def by_shifts(graph, x, weight, stride, dilation):
    """[B, C, T] with a kernel [C * m, 1, K] for each channel: a sum over the kernel of what lies beside."""
    from .shapes import strided
    many, kernel = weight.shape[0] // x.shape[1], weight.shape[2]
    if many > 1:
        x = graph.reshape(graph.broadcast(graph.reshape(x, (x.shape[0], x.shape[1], 1, x.shape[2])), (x.shape[0], x.shape[1], many, x.shape[2])),
                          (x.shape[0], weight.shape[0], x.shape[2]))
    reach = x.shape[2] - dilation * (kernel - 1)
    total = None
    for i in range(kernel):
        tap = graph.reshape(graph.slice(weight, 2, i, i + 1), (weight.shape[0], 1))
        part = graph.map("mul", strided(graph, graph.slice(x, 2, i * dilation, i * dilation + reach), 2, stride), tap)
        total = part if total is None else graph.map("add", total, part)
    return total


@op("_adaptive_avg_pool2d", "adaptive_avg_pool2d", "adaptive_avg_pool1d", "_adaptive_avg_pool3d", "adaptive_avg_pool3d")
def whole_mean(graph, x, size):
    """To one place: a mean."""
    x = graph.value(x, "f32")
    size = each(size, 1)
    if any(extent != 1 for extent in size):
        raise Unsupported("pooling is not taken, but for means over all places")
    return graph.mean(x, range(-len(size), 0), True)


refuse(ADVICE, "conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc _convolution")
refuse("pooling is not taken, but for means over all places; cut patches, and use a product", """
    max_pool1d max_pool2d max_pool3d max_pool2d_with_indices max_pool3d_with_indices avg_pool1d avg_pool2d avg_pool3d adaptive_max_pool1d
    adaptive_max_pool2d adaptive_max_pool3d fractional_max_pool2d
""")
refuse("recurrent layers are not taken: their steps follow each other", """
    lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell mkldnn_rnn_layer _thnn_fused_lstm_cell
""")
