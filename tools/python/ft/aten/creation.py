"""Tensors made after the shape of another."""
from ..registry import op


def filled(graph, number):
    return graph.broadcast(graph.scalar(number, graph.element), graph.shape)


@op("full_like")
def full_like(graph, x, number, **_):
    return graph.value(number, graph.element, graph.shape)


@op("zeros_like", "new_zeros", "empty_like", "new_empty", "new_empty_strided")
def zeros_like(graph, *_, **__):
    return filled(graph, 0)


@op("ones_like", "new_ones")
def ones_like(graph, *_, **__):
    return filled(graph, 1)


@op("new_full")
def new_full(graph, x, size, number, **_):
    return graph.value(number, graph.element, graph.shape)


@op("fill")
def fill(graph, x, number):
    return graph.value(number, graph.element, graph.shape)


@op("one_hot")
def one_hot(graph, x, classes=-1):
    import torch
    x = graph.value(x)
    places = graph.value(torch.arange(graph.shape[-1]))
    return graph.convert(graph.compare("eq", graph.reshape(x, x.shape + (1,)), places), graph.element)
