"""What ft.export does not take is named at once, with file and line and what to do."""
import inspect
import math
import unittest

import torch
from torch import nn
from torch.nn import functional as F

from exporting import ft

PICTURE = (torch.randn(2, 3, 16, 16), torch.tensor([0, 1]))


class Everything(nn.Module):
    """Five things that no model can."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.lstm, self.head = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.LSTM(8, 8, batch_first=True), nn.Linear(8, 2)

    def forward(self, pixels, labels):
        x = self.conv(pixels)  # a convolution
        x = self.norm(x)  # running means
        x = F.max_pool2d(x, 2)  # pooling
        x, _ = self.lstm(x.flatten(2).transpose(1, 2))  # recurrence
        x = x + torch.rand_like(x)  # random numbers
        return F.cross_entropy(self.head(x[:, -1]), labels)


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 2)

    def forward(self, x, labels):
        if x.sum() > 0:  # a branch
            x = -x
        return F.cross_entropy(self.head(x), labels)


class Chooses(nn.Module):
    def forward(self, x, w):
        return x[x > 0].sum()  # a shape


class Dispatches(nn.Module):
    """Rows by expert, as many as each has."""

    def forward(self, x, experts):
        counts = (experts[:, None] == torch.arange(3)).sum(0)
        first, second, third = x.split(counts.tolist())  # a number
        return first.sum() + second.square().sum() + third.exp().sum()


class NoLoss(nn.Module):
    def forward(self, x):
        return x * 2


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, dy):
        return dy


class Rounds(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x):
        return Straight.apply(x * self.w).sum()  # a derivative


class Gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 4)

    def forward(self, x):
        return self.gru(x)[0].mean()  # a recurrence


def line_of(cls, remark):
    lines, first = inspect.getsourcelines(cls)
    return first + next(i for i, line in enumerate(lines) if f"# {remark}" in line)


class Refusals(unittest.TestCase):
    def refused(self, module, example):
        with self.assertRaises(ft.ExportError) as caught:
            ft.export(module, example)
        return caught.exception

    def assert_place(self, problem, cls, remark):
        self.assertRegex(problem.where, rf"export_refusals_test.py:{line_of(cls, remark)}$")

    def test_all_at_once(self):
        error = self.refused(Everything(), PICTURE)
        by_op = {problem.what: problem for problem in error.problems}
        for pattern, remark, advice in (("conv2d", "a convolution", "kernel equals stride"), ("batch_norm", "running means", "group_norm"),
                                        ("max_pool2d", "pooling", "cut patches"), ("lstm", "recurrence", "not taken"), ("rand_like", "random numbers", "as an input")):
            (found,) = [problem for what, problem in by_op.items() if pattern in what]
            self.assert_place(found, Everything, remark)
            self.assertIn(advice, str(found))
        self.assertEqual(len(str(error).splitlines()), 1 + len(error.problems))
        self.assertRegex(str(error), r"^\d+ things of this module cannot be exported:\n")

    def test_buffers_that_change_are_named(self):
        self.assertTrue(any("norm.running_mean" in str(problem) for problem in self.refused(Everything(), PICTURE).problems))

    def test_data_dependent_control_flow(self):
        error = self.refused(Branches(), (torch.randn(2, 4), torch.tensor([0, 1])))
        self.assertEqual(len(error.problems), 1)
        self.assertEqual(error.problems[0].what, "data-dependent control flow")
        self.assert_place(error.problems[0], Branches, "a branch")

    def test_shapes_that_depend_on_values(self):
        error = self.refused(Chooses(), (torch.randn(2, 4), torch.randn(2, 4)))
        self.assert_place(error.problems[0], Chooses, "a shape")

    def test_numbers_that_are_values(self):
        error = self.refused(Dispatches(), (torch.randn(4, 2), torch.tensor([0, 1, 1, 2])))
        self.assertEqual(len(error.problems), 1)
        self.assert_place(error.problems[0], Dispatches, "a number")
        self.assertIn("tolist", str(error.problems[0]))

    def test_derivatives_of_ones_own(self):
        error = self.refused(Rounds(), torch.randn(2, 4))
        self.assertEqual(error.problems[0].what, "autograd.Function Straight")
        self.assert_place(error.problems[0], Rounds, "a derivative")

    def test_recurrent_layers(self):
        error = self.refused(Gru(), torch.randn(3, 2, 4))
        self.assertIn("gru", error.problems[0].what)

    def test_integers_of_other_widths(self):
        class Hashed(nn.Module):
            def __init__(self):
                super().__init__()
                self.table = nn.Embedding(101, 4)

            def forward(self, ids):
                return self.table((ids[:, :-1] * 50257 + ids[:, 1:]) % 101).square().mean()  # more than 32 bits

        class Wraps(Hashed):
            def forward(self, ids):
                return self.table((ids + 200).long() % 101).square().mean()
        self.assert_place(self.refused(Hashed(), torch.randint(0, 50257, (2, 5))).problems[0], Hashed, "more than 32 bits")
        self.assertIn("wraps", str(self.refused(Wraps(), torch.randint(0, 255, (2, 5), dtype=torch.uint8))))

        class Fits(Hashed):
            def forward(self, ids):
                seen = ids.ne(0)
                penalty = (1 - seen.long()) * -100000 + torch.arange(4) * 40000  # below 2^31, whatever the ids
                return (self.table(ids * seen) * torch.ones(4, 4, dtype=torch.bool).tril() * torch.tensor([1, 2, math.inf, 4]).clamp(max=3)).square().mean() + penalty.float().mean()
        ft.export(Fits(), torch.randint(0, 101, (2, 4)))

    def test_what_is_no_module(self):
        for other in (lambda x: x.mean(), nn.Linear(4, 4).forward):
            with self.assertRaisesRegex(ft.Error, "no torch.nn.Module"):
                ft.export(other, torch.randn(2, 4))

    def test_functions_with_effects(self):
        class Solves(nn.Module):
            def __init__(self):
                super().__init__()
                self.w = nn.Parameter(torch.eye(4))

            def forward(self, x):
                return torch.linalg.solve(self.w, x).mean()
        self.assertIn("linalg_solve", str(self.refused(Solves(), torch.randn(2, 4, 4))))

    def test_what_is_no_loss(self):
        with self.assertRaisesRegex(ft.Error, "returns no loss"):
            ft.export(NoLoss(), torch.randn(2, 4))

    def test_inputs_that_cannot_be(self):
        class Weighed(nn.Module):
            def forward(self, x, lr):
                return (x * lr).mean()
        with self.assertRaisesRegex(ft.Error, "cannot be called 'lr'"):
            ft.export(Weighed(), (torch.randn(2, 4), torch.randn(2, 4)))
        with self.assertRaisesRegex(ft.Error, r"constants=\['weight'\]"):
            ft.export(Weighed(), (torch.randn(2, 4), torch.randn(4)), names={"lr": "weight"})
        with self.assertRaisesRegex(ft.Error, r"constants has \['wieght'\], but the inputs are \['x', 'weight'\]"):
            ft.export(Weighed(), (torch.randn(2, 4), torch.randn(2, 4)), names={"lr": "weight"}, constants=["wieght"])
        with self.assertRaisesRegex(ft.Error, r"names has \['rl'\]"):
            ft.export(Weighed(), (torch.randn(2, 4), torch.randn(2, 4)), names={"rl": "weight"})
        made = ft.export(Weighed(), (torch.randn(2, 4), torch.randn(4)), names={"lr": "weight"}, constants=["weight"])
        self.assertIn('ft.input = "weight", ft.constant', made.text)


if __name__ == "__main__":
    unittest.main()
