"""Products in fp8 are those of PyTorch's float8 types, forward and backward: a step of a module of linear layers has the loss and the gradients of
the same module in PyTorch, where these layers round to float8, with bf16 everywhere else."""
import unittest

import torch
from torch import nn

from exporting import ExportTest, run_program

EXAMPLES, WIDTH, BLOCK = 64, 192, 128
ROUNDING = 2.0**-9  # of bf16, the most


def rounded(x, dtype, rows, columns):
    """x [r, c] through `dtype`: blocks of so many rows and columns share a scale, the largest power of two that fits."""
    result = torch.empty_like(x)
    for i in range(0, x.shape[0], rows):
        for j in range(0, x.shape[1], columns):
            block = x[i:i + rows, j:j + columns].float()
            greatest = block.abs().max()
            scale = torch.exp2(torch.floor(torch.log2(torch.finfo(dtype).max / greatest))) if greatest > 0 else torch.tensor(1.0)
            result[i:i + rows, j:j + columns] = (block * scale).to(dtype).float() / scale
    return result


class Float8Linear(torch.autograd.Function):
    """y = x w^T + b of [rows, in] and [out, in], all bf16."""

    @staticmethod
    def forward(ctx, x, w, b, blockwise):
        ctx.save_for_backward(x, w)
        ctx.blockwise = blockwise
        y = Float8Linear.operand(x, torch.float8_e4m3fn, blockwise).float() @ Float8Linear.weight(w, blockwise).float().T
        return (y + b.float()).to(x.dtype)

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        wide = torch.float8_e4m3fn if ctx.blockwise else torch.float8_e5m2
        dx = Float8Linear.operand(dy, wide, ctx.blockwise).float() @ Float8Linear.weight(w, ctx.blockwise).float()
        # Sums are over rows, and so blocks are of rows.
        dw = Float8Linear.operand(dy.T, wide, ctx.blockwise).float() @ Float8Linear.operand(x.T, torch.float8_e4m3fn, ctx.blockwise).float().T
        return dx.to(x.dtype), dw.to(w.dtype), dy.float().sum(0).to(w.dtype), None

    @staticmethod
    def operand(x, dtype, blockwise):
        return rounded(x, dtype, *((1, BLOCK) if blockwise else x.shape))

    @staticmethod
    def weight(w, blockwise):
        return rounded(w, torch.float8_e4m3fn, *((BLOCK, BLOCK) if blockwise else w.shape))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


class Layers(nn.Module):
    """One: a bf16 that is rounded the other way, sums being in other orders, may be a float8 that is, which the next layer would multiply."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(1))

    def forward(self, x, wanted):
        for layer in self.layers:
            x = layer(x)
        return ((x - wanted) ** 2).sum() * 2.0**-13


def in_float8(module, blockwise):
    for linear in module.modules():
        if isinstance(linear, nn.Linear):
            linear.forward = lambda x, linear=linear: Float8Linear.apply(x, linear.weight, linear.bias, blockwise)
    return module


class Float8Test(ExportTest):
    def setUp(self):
        super().setUp()
        torch.manual_seed(5)
        self.module = Layers()
        with torch.no_grad():
            for parameter in self.module.parameters():
                parameter.copy_(parameter.bfloat16())
        # Magnitudes differ, so that blocks have scales of their own.
        columns = torch.exp2(torch.arange(WIDTH) % 9 - 5)
        self.example = tuple((torch.randn(EXAMPLES, WIDTH) * columns).bfloat16().float() for _ in range(2))
        self.model, _ = self.exported(self.module, self.example)

    def by_pytorch(self, blockwise=None):
        module = Layers()
        module.load_state_dict(self.module.state_dict())
        module.bfloat16()
        if blockwise is not None:
            in_float8(module, blockwise)
        module(*(x.bfloat16() for x in self.example)).backward()
        return {name: parameter.grad.double() for name, parameter in module.named_parameters()}

    def by_us(self, *options, ranks=1):
        plan = self.compiled(self.model, "--strategy=full_shard", "--mixed-precision=fp8", "--reduce-dtype=fp32", *options)
        _, after = self.step(plan, ranks=ranks)
        return {name: (before.double() - after[name].double()).detach() for name, before in self.module.named_parameters()}

    def test_gradients(self):
        """Within a twentieth of what float8 changes; PyTorch's have been rounded to bf16."""
        in_bf16 = self.by_pytorch()
        for recipe in ("tensorwise", "blockwise"):
            theirs, ours = self.by_pytorch(recipe == "blockwise"), self.by_us(f"--fp8-recipe={recipe}")
            for name, gradient in theirs.items():
                with self.subTest(recipe=recipe, parameter=name):
                    effect, off = float((in_bf16[name] - gradient).norm()), float((ours[name] - gradient).norm())
                    self.assertGreater(effect, 0.01 * float(gradient.norm()), "it rounds nothing")
                    self.assertLessEqual(off, effect / 20 + ROUNDING * float(gradient.norm()))


if __name__ == "__main__":
    unittest.main()
