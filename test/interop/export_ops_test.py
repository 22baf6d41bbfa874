"""Ops of PyTorch one by one through ft.export: each has a parameter of its own, so that its gradient is compared apart from all others'."""
import math
import unittest

import torch
from torch import nn
from torch.nn import functional as F

from exporting import ExportTest

PLACES = torch.tensor([[2, 0], [3, 1]])
MASK = torch.tensor([[True, False, True, True, False, True]] * 4)
# Each of x [4, 6], positive and negative, and a row of it.
ELEMENTWISE = {
    "clamp": lambda x: x.clamp(-0.5, 0.7), "clamp_min": lambda x: x.clamp_min(0.1), "clamp of tensors": lambda x: x.clamp(x.detach().mean(), x[0].detach() + 1),
    "softplus": F.softplus, "softplus, beta": lambda x: F.softplus(x, beta=2.0), "mish": F.mish, "elu": F.elu, "celu": lambda x: F.celu(x, 0.7), "selu": F.selu,
    "leaky_relu": F.leaky_relu, "relu6": lambda x: F.relu6(4 * x), "hardswish": F.hardswish, "hardsigmoid": F.hardsigmoid, "hardtanh": F.hardtanh, "logsigmoid": F.logsigmoid,
    "glu": F.glu, "gelu": F.gelu, "gelu tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "softshrink": F.softshrink, "tanhshrink": F.tanhshrink,
    "softsign": F.softsign, "threshold": lambda x: F.threshold(x, 0.1, -1.0), "prelu": lambda x: F.prelu(x, x[0, :1].abs()), "quick gelu": lambda x: x * torch.sigmoid(1.702 * x),
    "sqrt": lambda x: x.abs().sqrt(), "rsqrt": lambda x: (x.abs() + 1).rsqrt(), "log1p": lambda x: x.abs().log1p(), "expm1": torch.expm1, "exp2": torch.exp2,
    "log2": lambda x: (x.abs() + 1).log2(), "sinh": torch.sinh, "cosh": torch.cosh, "tan": torch.tan, "atanh": lambda x: (x / 9).atanh(), "asinh": torch.asinh, "erf": torch.erf,
    "erfc": torch.erfc, "pow 3": lambda x: x ** 3, "pow 1.5": lambda x: x.abs() ** 1.5, "number to a power": lambda x: 2.0 ** x, "pow": lambda x: (x.abs() + 1) ** x,
    "floor": lambda x: x.floor() * x, "ceil": lambda x: x.ceil() * x, "round": lambda x: (4 * x).round() * x, "trunc": lambda x: (3 * x).trunc() * x, "fmod": lambda x: x.fmod(0.4),
    "remainder": lambda x: x.remainder(0.4), "div floor": lambda x: torch.div(x, 0.3, rounding_mode="floor") * x, "sign": lambda x: x.sign() * x, "where": lambda x: torch.where(x > 0, x, -2 * x),
    "masked_fill": lambda x: x.masked_fill(MASK, 0.5), "maximum": lambda x: torch.maximum(x, x.flip(0)), "lerp": lambda x: torch.lerp(x, x.roll(1, 0), 0.3),
    "addcmul": lambda x: torch.addcmul(x, x, x, value=0.5), "addcdiv": lambda x: torch.addcdiv(x, x, x.abs() + 1), "rsub": lambda x: 1 - x, "reciprocal": lambda x: 1 / (x.abs() + 1),
    "nan_to_num": lambda x: torch.nan_to_num(x), "logical": lambda x: x * ((x > 0) & ~(x > 1) | (x < -1) ^ (x < -0.5)).float(), "int arithmetic": lambda x: x * ((torch.arange(6) * 3 + 1) % 4 // 2),
    "isfinite": lambda x: torch.where(torch.isfinite(x) & ~torch.isnan(x), x, 0.0), "copysign by where": lambda x: x.abs() * torch.where(x < 0, -1.0, 1.0),
}
SHAPES = {
    "mean of places that were turned": lambda x: F.adaptive_avg_pool1d(x.view(2, 2, 6).transpose(1, 2), 1).square(),
    "stack": lambda x: torch.stack([x, 2 * x], 1), "cat": lambda x: torch.cat([x, x[:, :2]], -1), "repeat": lambda x: x.repeat(2, 1, 3), "tile": lambda x: x.tile(2), "roll": lambda x: x.roll((1, -2), (0, 1)),
    "roll flat": lambda x: x.roll(5), "flip": lambda x: x.flip(0, 1), "repeat_interleave": lambda x: x.repeat_interleave(3, 1), "slice step": lambda x: x[:, 1::2] * x[:, ::2].cos(), "unfold": lambda x: x.unfold(1, 3, 2),
    "pad": lambda x: F.pad(x, (1, 2, 0, 1)), "pad value": lambda x: F.pad(x, (1, -2), value=0.5), "tril": lambda x: x.tril(1), "triu": lambda x: x.triu(), "diagonal": lambda x: x.diagonal(1), "unbind": lambda x: x.unbind(1)[2],
    "chunk": lambda x: x.chunk(3, 1)[1], "split": lambda x: x.split([1, 5], 1)[1], "expand": lambda x: x[:, :1].expand(4, 5), "einsum": lambda x: torch.einsum("ij,kj,k->ik", x, x, x[:, 0]), "movedim": lambda x: x.view(2, 2, 6).movedim(2, 0),
    "unflatten": lambda x: x.unflatten(1, (2, 3)).transpose(0, 2), "select_scatter": lambda x: torch.select_scatter(x, x[0] * 2, 0, 2), "slice_scatter": lambda x: torch.slice_scatter(x, x[:, :3].sin(), 1, 2, 5),
    "slice_scatter step": lambda x: torch.slice_scatter(x, x[:, :3].sin(), 1, 0, 6, 2), "copy in place": lambda x: assigned(x, lambda y: y[1:3].copy_(x[:2])), "fill in place": lambda x: assigned(x, lambda y: y[:, 2].fill_(0.3)),
    "index_put": lambda x: assigned(x, lambda y: y.__setitem__((torch.tensor([3, 1]), torch.tensor([0, 5])), x[:2, 0])), "index_put mask": lambda x: assigned(x, lambda y: y.__setitem__(MASK, 0.0)),
    "index_put rows": lambda x: assigned(x, lambda y: y.__setitem__(torch.tensor([3, 0]), x[1:3].cos())), "index_put add": lambda x: x.index_put((torch.tensor([1, 1, 2]),), x[:3], accumulate=True),
    "kron": lambda x: torch.kron(x[:2, :2], x[:2, 2:4]), "pixel_shuffle": lambda x: F.pixel_shuffle(x.view(1, 4, 2, 3), 2), "meshgrid": lambda x: sum(torch.meshgrid(x[:, 0], x[0], indexing="ij")),
    "block_diag": lambda x: torch.block_diag(x[:2], x[2:]), "cross by roll": lambda x: x.roll(1, 1) * x.roll(2, 1),
}
REDUCTIONS = {
    "sum": lambda x: x.sum(), "mean": lambda x: x.mean(0), "var": lambda x: x.var(1), "std": lambda x: x.std(0, correction=0), "amax": lambda x: x.amax(1), "amin": lambda x: x.amin(), "max.dim": lambda x: x.max(1).values, "norm 2": lambda x: x.norm(dim=1),
    "norm 1": lambda x: torch.linalg.vector_norm(x, 1, dim=0), "norm inf": lambda x: torch.linalg.vector_norm(x, math.inf), "norm 3": lambda x: torch.linalg.vector_norm(x, 3, dim=1), "normalize": lambda x: F.normalize(x, dim=-1),
    "zero vector": lambda x: F.normalize(x * torch.tensor([[1.0], [0.0], [1.0], [1.0]]), dim=-1), "prod": lambda x: x.prod(1), "cumsum": lambda x: x.cumsum(0), "logsumexp": lambda x: x.logsumexp(1), "softmax": lambda x: x.softmax(0),
    "log_softmax": lambda x: x.log_softmax(1), "topk": lambda x: x.topk(3, 1).values, "sort": lambda x: x.sort(1, descending=True).values, "argsort": lambda x: x.gather(1, x.argsort(1)), "any": lambda x: x * (x > 1).any(1, keepdim=True),
    "argmax": lambda x: x * F.one_hot(x.argmax(1), 6), "cosine_similarity": lambda x: F.cosine_similarity(x[:2], x[2:]), "cdist": lambda x: torch.cdist(x[:2], x[2:]), "var_mean": lambda x: sum(torch.var_mean(x, 1)), "no_grad": lambda x: x * without_gradient(x), "detach": lambda x: x * x.detach(),
    "aminmax": lambda x: sum(torch.aminmax(x, dim=1)), "all": lambda x: x * (x > -3).all(), "searchsorted": lambda x: x * torch.bucketize(x, torch.tensor([-0.5, 0.1, 0.9])),
}
CHOICES = {
    "index": lambda x: x[:, PLACES], "index two": lambda x: x[PLACES, torch.tensor([5, 0])], "index negative": lambda x: x[torch.tensor([-1, 0])], "index apart": lambda x: x.view(4, 2, 3)[PLACES, :, torch.tensor([[0, 2], [1, 1]])], "index mask": lambda x: x[MASK],
    "gather": lambda x: x.gather(1, PLACES), "gather rows": lambda x: x.gather(0, PLACES), "take_along_dim": lambda x: torch.take_along_dim(x, torch.tensor([[1, 5, 0, 0]]).T, 1), "index_select": lambda x: x.index_select(1, torch.tensor([5, 0, 0])),
    "embedding": lambda x: F.embedding(PLACES, x), "embedding padding": lambda x: F.embedding(PLACES, x, padding_idx=2), "scatter": lambda x: x.scatter(1, torch.tensor([[1], [5], [0], [0]]), 0.7), "scatter_add": lambda x: x.scatter_add(1, PLACES, x[:2, 3:5]),
    "scatter of an order": lambda x: torch.zeros(4, 6).scatter(1, x.topk(2, 1).indices, x[:, :2]), "index_add": lambda x: x.index_add(0, torch.tensor([1, 1]), x[2:]), "scatter_reduce": lambda x: x.scatter_reduce(0, PLACES, x[:2, :2], "sum"),
    "take": lambda x: torch.take(x, PLACES * 5), "chosen by values": lambda x: x[x[:, 0].argsort()], "index by two of values": lambda x: x[torch.arange(4), x.argmax(1)],
}
PRODUCTS = {
    "matmul": lambda x: x @ x.T, "bmm": lambda x: torch.bmm(x.view(2, 2, 6), x.view(2, 6, 2)), "baddbmm": lambda x: torch.baddbmm(x[:2, :2], x.view(2, 2, 6), x.view(2, 6, 2), beta=0.5, alpha=2), "addmm": lambda x: torch.addmm(x[0, :4], x, x.T),
    "addmm beta": lambda x: torch.addmm(x[:4, :4], x, x.T, beta=0.3), "mv": lambda x: x @ x[0], "dot": lambda x: x[0] @ x[1], "outer": lambda x: torch.outer(x[0], x[1]), "broadcast": lambda x: x.view(2, 1, 2, 6) @ x.view(1, 3, 4, 2).view(4, 6).T, "bilinear": lambda x: F.bilinear(x[:, :2], x[:, 2:4], x[:3].reshape(3, 6)[:, :4].reshape(3, 2, 2)),
    "layer_norm": lambda x: F.layer_norm(x, (6,)), "layer_norm of two": lambda x: F.layer_norm(x.view(2, 2, 6), (2, 6), x[:2], x[2:]), "layer_norm, no bias": lambda x: F.layer_norm(x, (6,), x[0]), "rms_norm": lambda x: F.rms_norm(x, (6,), x[0], 1e-6),
    "group_norm": lambda x: F.group_norm(x.view(2, 4, 3), 2, x[0, :4], x[1, :4]), "conv 1x1": lambda x: F.conv2d(x.view(1, 4, 2, 3), x.view(6, 4, 1, 1), x[0]), "conv patches": lambda x: F.conv2d(x.view(1, 1, 4, 6), x[:2].reshape(3, 1, 2, 2), stride=2),
    "conv depthwise": lambda x: F.conv1d(x[None], x[:, None, :3], padding=2, groups=4), "conv depthwise causal": lambda x: F.conv1d(F.pad(x[None], (4, 0)), x[:, None, :3], x[:, 0], dilation=2, groups=4), "conv1d patches": lambda x: F.conv1d(x[None], x[:, :2].reshape(1, 4, 2).repeat(2, 1, 1), stride=2),
    "mean pool": lambda x: F.adaptive_avg_pool2d(x.view(1, 2, 3, 4), 1), "attention": lambda x: F.scaled_dot_product_attention(x.view(1, 2, 2, 6), x.view(1, 2, 2, 6), x.view(1, 2, 2, 6)),
    "attention, other lengths": lambda x: F.scaled_dot_product_attention(x.view(2, 2, 6), x.view(1, 4, 6), x.view(1, 4, 6)[..., :3]), "attention, shared heads": lambda x: F.scaled_dot_product_attention(x.view(1, 4, 2, 3), x.view(1, 2, 4, 3)[:, :, :2], x.view(1, 2, 4, 3)[:, :, :2], enable_gqa=True),
    "attention, nothing seen": lambda x: F.scaled_dot_product_attention(x.view(1, 1, 4, 6), x.view(1, 1, 4, 6), x.view(1, 1, 4, 6), attn_mask=torch.tensor([[True], [False], [True], [True]]).expand(4, 4)),
}
CLASSES = torch.tensor([1, 5, -100, 0])
LOSSES = {
    "cross_entropy": lambda x: F.cross_entropy(x, CLASSES), "sum": lambda x: F.cross_entropy(x, CLASSES, reduction="sum"), "none": lambda x: F.cross_entropy(x, CLASSES, reduction="none"), "weights": lambda x: F.cross_entropy(x, CLASSES, weight=torch.arange(1.0, 7.0)),
    "smoothing": lambda x: F.cross_entropy(x, CLASSES, label_smoothing=0.2), "smoothing and weights": lambda x: F.cross_entropy(x, CLASSES, label_smoothing=0.2, weight=torch.arange(1.0, 7.0)), "ignore_index": lambda x: F.cross_entropy(x, CLASSES.clamp(0), ignore_index=0),
    "probabilities": lambda x: F.cross_entropy(x, x.detach().softmax(1)), "of places": lambda x: F.cross_entropy(x.view(2, 6, 2), torch.tensor([[0, 5], [2, 2]])), "nll": lambda x: F.nll_loss(x.log_softmax(1), CLASSES), "mse": lambda x: F.mse_loss(x, torch.ones(4, 6)),
    "l1": lambda x: F.l1_loss(x, torch.ones(4, 6)), "smooth l1": lambda x: F.smooth_l1_loss(x, torch.ones(4, 6)), "huber": lambda x: F.huber_loss(x, torch.ones(4, 6), delta=0.5), "bce": lambda x: F.binary_cross_entropy(x.sigmoid(), MASK.float()),
    "bce with logits": lambda x: F.binary_cross_entropy_with_logits(x, MASK.float(), pos_weight=torch.arange(1.0, 7.0)), "kl_div": lambda x: F.kl_div(x.log_softmax(1), torch.full((4, 6), 1 / 6), reduction="batchmean"), "margin": lambda x: F.margin_ranking_loss(x[0], x[1], x[2].sign()),
    "soft margin": lambda x: F.soft_margin_loss(x, MASK.float() * 2 - 1), "triplet": lambda x: F.triplet_margin_loss(x[:2], x[2:], x[1:3]), "hinge": lambda x: F.hinge_embedding_loss(x, MASK.float() * 2 - 1), "cosine": lambda x: F.cosine_embedding_loss(x[:2], x[2:], torch.tensor([1, -1])),
    "poisson": lambda x: F.poisson_nll_loss(x, MASK.float()),
}


def zero(x):
    """0 everywhere, with a gradient."""
    return x - x.detach()


# Where a derivative jumps, or a formula has none.
KINKS = {
    "elu": lambda x: F.elu(zero(x)) * x, "selu": lambda x: F.selu(zero(x)) * x, "celu": lambda x: F.celu(zero(x), 0.7) * x, "clamp above": lambda x: zero(x).clamp(min=0) + x,
    "clamp between": lambda x: zero(x).clamp(-1, 0) + x, "clamp by tensors": lambda x: zero(x).clamp(torch.zeros(()), torch.ones(())) * x, "std of rows that are alike": lambda x: zero(x).std(-1) + x.mean(-1),
    "power of 0": lambda x: zero(x) ** (x.sigmoid() + 1) + x, "power of 0 to numbers": lambda x: zero(x) ** torch.tensor([1., 2., 0., 3.])[torch.arange(x.shape[-1]) % 4] + x, "xlogy": lambda x: torch.special.xlogy(x.sigmoid(), x.sigmoid()), "xlogy of 0": lambda x: torch.special.xlogy(x.relu().detach(), x.sigmoid()), "nan_to_num": lambda x: torch.nan_to_num(torch.where(x > 0, x, float("nan"))),
    "bce, saturated": lambda x: F.binary_cross_entropy((x * 80).sigmoid(), MASK.float()), "distillation": lambda x: F.kl_div(x.log_softmax(1), (2 * x).detach().softmax(1), reduction="batchmean"),
    "repeated by half": lambda x: F.scaled_dot_product_attention(x.view(1, 4, 2, 3), x.view(1, 2, 4, 3)[:, :, :2].repeat_interleave(2, 1), x.view(1, 4, 2, 3), is_causal=True),
}


def assigned(x, change):
    y = x.clone()
    change(y)
    return y


def without_gradient(x):
    with torch.no_grad():
        return (x * 2).sigmoid()


class Ops(nn.Module):
    """A loss of all results, weighed so that no element is like another."""

    def __init__(self, ops):
        super().__init__()
        self.ops = ops
        self.x = nn.ParameterList(torch.randn(4, 6) for _ in ops)

    def forward(self, scale):
        total = 0.0
        for x, function in zip(self.x, self.ops):
            y = function(x * scale[0])
            total = total + (y * torch.cos(torch.arange(y.numel()).view(y.shape) * 0.7)).sum()
        return total


class ExportedOps(ExportTest):
    def check_ops(self, table):
        names = list(table)
        torch.manual_seed(3)
        try:
            self.check(Ops(list(table.values())), (torch.ones(2),))
        except Exception:
            # One of them is wrong: each by itself says which.
            for name in names:
                with self.subTest(name):
                    self.check(Ops([table[name]]), (torch.ones(2),), name="one")
            raise

    def test_elementwise(self):
        self.check_ops(ELEMENTWISE)

    def test_shapes(self):
        self.check_ops(SHAPES)

    def test_reductions(self):
        self.check_ops(REDUCTIONS)

    def test_choices(self):
        self.check_ops(CHOICES)

    def test_products(self):
        self.check_ops(PRODUCTS)

    def test_losses(self):
        self.check_ops(LOSSES)

    def test_kinks(self):
        self.check_ops(KINKS)


if __name__ == "__main__":
    unittest.main()
