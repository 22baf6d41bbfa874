"""Every optimizer of the table against PyTorch's: losses and weights after some steps of a model with embedding, matrices of both shapes,
experts side by side, norms and a head. Lion, which PyTorch lacks, is a loop here."""

import json
import subprocess
import unittest
from unittest import mock

import torch
from safetensors.torch import load_file, save_file
from torch.optim import _muon

from support import BIN, InteropTest

BATCH, COUNT, D, H, E, V, LR, STEPS = 8, 24, 16, 40, 3, 12, 0.02, 8

MODEL = f"""module {{
  ft.parameter @embed : tensor<{V}x{D}xf32> = #ft.init<normal, 1.0> {{layer = "a"}}
  ft.parameter @up : tensor<{D}x{H}xf32> = #ft.init<normal, 0.2> {{layer = "a"}}
  ft.parameter @bias : tensor<{H}xf32> = #ft.init<constant, 0.0> {{layer = "a", no_decay}}
  ft.parameter @down : tensor<{H}x{D}xf32> = #ft.init<normal, 0.2> {{layer = "a"}}
  ft.parameter @experts : tensor<{E}x{D}x{D}xf32> = #ft.init<normal, 0.3> {{layer = "b"}}
  ft.parameter @head : tensor<{V}x{D}xf32> = #ft.init<normal, 0.5> {{layer = "b"}}
  func.func @forward(%tokens: tensor<{BATCH}xi32> {{ft.input = "tokens"}}, %targets: tensor<{BATCH}xi32> {{ft.input = "targets"}}) -> tensor<f32> {{
    %embed = ft.get @embed : tensor<{V}x{D}xf32>
    %x = ft.embedding %tokens, %embed : (tensor<{BATCH}xi32>, tensor<{V}x{D}xf32>) -> tensor<{BATCH}x{D}xf32>
    %up = ft.get @up : tensor<{D}x{H}xf32>
    %bias = ft.get @bias : tensor<{H}xf32>
    %h = ft.matmul %x, %up bias %bias : (tensor<{BATCH}x{D}xf32>, tensor<{D}x{H}xf32>, tensor<{H}xf32>) -> tensor<{BATCH}x{H}xf32>
    %t = ft.tanh %h : tensor<{BATCH}x{H}xf32>
    %down = ft.get @down : tensor<{H}x{D}xf32>
    %y = ft.matmul %t, %down : (tensor<{BATCH}x{H}xf32>, tensor<{H}x{D}xf32>) -> tensor<{BATCH}x{D}xf32>
    %one = ft.reshape %y : tensor<{BATCH}x{D}xf32> -> tensor<1x{BATCH}x{D}xf32>
    %each = ft.broadcast %one : tensor<1x{BATCH}x{D}xf32> -> tensor<{E}x{BATCH}x{D}xf32>
    %experts = ft.get @experts : tensor<{E}x{D}x{D}xf32>
    %all = ft.dot %each, %experts : tensor<{E}x{BATCH}x{D}xf32>, tensor<{E}x{D}x{D}xf32> -> tensor<{E}x{BATCH}x{D}xf32>
    %s = ft.tanh %all : tensor<{E}x{BATCH}x{D}xf32>
    %z = ft.reduce "sum" %s over [0] : tensor<{E}x{BATCH}x{D}xf32> -> tensor<{BATCH}x{D}xf32>
    %head = ft.get @head : tensor<{V}x{D}xf32>
    %logits = ft.matmul %z, %head transpose_b : (tensor<{BATCH}x{D}xf32>, tensor<{V}x{D}xf32>) -> tensor<{BATCH}x{V}xf32>
    %loss = ft.cross_entropy %logits, %targets : (tensor<{BATCH}x{V}xf32>, tensor<{BATCH}xi32>) -> tensor<f32>
    return %loss : tensor<f32>
  }}
}}
"""


def loss_of(w, tokens, targets):
    x = torch.tanh(w["embed"][tokens] @ w["up"] + w["bias"]) @ w["down"]
    z = torch.tanh(x @ w["experts"]).sum(0)
    return torch.nn.functional.cross_entropy(z @ w["head"].T, targets)


class Lion(torch.optim.Optimizer):
    def __init__(self, groups, lr, betas):
        super().__init__(groups, {"lr": lr, "betas": betas, "weight_decay": 0})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            first, second = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                direction = torch.sign(first * m + (1 - first) * p.grad)
                m.mul_(second).add_(p.grad, alpha=1 - second)
                p.mul_(1 - group["lr"] * group["weight_decay"]).sub_(direction, alpha=group["lr"])


_torchs = _muon._zeropower_via_newtonschulz


def orthogonal(matrix, coefficients, steps, eps):
    """torch's, which is in bf16, in f64."""
    with mock.patch.object(torch, "bfloat16", torch.float64):
        return _torchs(matrix, coefficients, steps, eps)


class Optimizers(InteropTest):
    def run_it(self, *command):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def setUp(self):
        super().setUp()
        torch.manual_seed(5)
        self.data = {name: torch.randint(V, (COUNT,), dtype=torch.int32) for name in ("tokens", "targets")}
        save_file(self.data, self.folder / "train.safetensors")
        (self.folder / "model.mlir").write_text(MODEL)

    def trained(self, *options):
        """Ours: weights before, losses, weights after."""
        plan, before, after, out = (self.folder / name for name in ("plan.bin", "0.safetensors", "1.safetensors", "m.jsonl"))
        self.run_it(BIN / "ftc", "compile", self.folder / "model.mlir", "--strategy=full_shard", "--clip=0", "--weight-decay=0.1", *options,
                    "-o", plan)
        run = (BIN / "ftexec", plan, f"--data={self.folder}/train.safetensors", "--progress=off")
        self.run_it(*run, "--steps=0", f"--save-weights={before}")
        out.unlink(missing_ok=True)
        self.run_it(*run, f"--steps={STEPS}", f"--lr={LR}", "--shuffle=off", f"--metrics={out}", f"--save-weights={after}")
        losses = [line["loss"] for line in map(json.loads, out.read_text().splitlines()) if "loss" in line]
        return load_file(before), losses, load_file(after)

    def check(self, make, *options):
        start, losses, end = self.trained(*options)
        w = {name: tensor.double().requires_grad_() for name, tensor in start.items()}
        optimizers = make(w)
        for step, ours in enumerate(losses):
            first = step * BATCH % COUNT
            part = {name: tensor[first:first + BATCH].long() for name, tensor in self.data.items()}
            for tensor in w.values():
                tensor.grad = None
            loss = loss_of(w, part["tokens"], part["targets"])
            self.assertAlmostEqual(ours, loss.item(), delta=1e-5 * abs(loss.item()), msg=f"{options}, step {step}")
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
        self.assertEqual(len(losses), STEPS)
        for name, tensor in w.items():
            torch.testing.assert_close(end[name].double(), tensor.detach(), rtol=1e-4, atol=2e-5, msg=lambda text: f"{options} {name}: {text}")

    @staticmethod
    def groups(w, names=None):
        names = list(w) if names is None else names
        return [{"params": [w[name] for name in names if name != "bias"], "weight_decay": 0.1},
                {"params": [w[name] for name in names if name == "bias"], "weight_decay": 0}]

    def test_adamw_and_adam(self):
        options = {"lr": LR, "betas": (0.9, 0.95), "eps": 1e-8}
        self.check(lambda w: [torch.optim.AdamW(self.groups(w), **options)], "--optimizer=adamw")
        self.check(lambda w: [torch.optim.Adam(self.groups(w), **options)], "--optimizer=adam")

    def test_sgd(self):
        for momentum, nesterov in ((0, False), (0.9, False), (0.9, True)):
            self.check(lambda w: [torch.optim.SGD(self.groups(w), lr=LR, momentum=momentum, nesterov=nesterov)], "--optimizer=sgd",
                       f"--momentum={momentum}", f"--nesterov={'on' if nesterov else 'off'}")

    def test_lion(self):
        self.check(lambda w: [Lion(self.groups(w), LR, (0.9, 0.99))], "--optimizer=lion")

    def test_adafactor(self):
        def make(eps, threshold):
            return lambda w: [torch.optim.Adafactor(self.groups(w), lr=LR, eps=(eps, 2e-3), d=threshold, beta2_decay=-0.7)]

        self.check(make(1.1920928955078125e-07, 1), "--optimizer=adafactor", "--beta2-decay=-0.7", "--eps2=2e-3")
        # Steps that are limited, and small second moments.
        self.check(make(1e-3, 1.25), "--optimizer=adafactor", "--beta2-decay=-0.7", "--eps=1e-3", "--eps2=0.002", "--clip-threshold=1.25")

    def test_adafactor_without_scale(self):
        """The root mean square of a parameter is taken for 1."""
        class Rule:
            """torch's formulas with a parameter's size left out, as a loop in f64."""
            def __init__(self, w):
                self.w, self.state, self.t = w, {name: {} for name in w}, 0

            @torch.no_grad()
            def step(self):
                self.t += 1
                for name, p in self.w.items():
                    state, g, b = self.state[name], p.grad, self.t ** -0.8
                    if g.ndim < 2:
                        state["v"] = state.get("v", 0) * (1 - b) + g * g * b
                        estimate = state["v"]
                    else:
                        state["r"] = state.get("r", 0) * (1 - b) + (g * g).mean(-1, keepdim=True) * b
                        state["c"] = state.get("c", 0) * (1 - b) + (g * g).mean(-2, keepdim=True) * b
                        estimate = state["r"] @ state["c"] / state["r"].mean(-2, keepdim=True)
                    u = g / estimate.clamp(min=1.1920928955078125e-07 ** 2).sqrt()
                    u /= max(1.0, u.pow(2).mean().sqrt().item())
                    p.mul_(1 - LR * (0 if name == "bias" else 0.1)).sub_(u, alpha=min(LR, self.t ** -0.5))

        self.check(lambda w: [Rule(w)], "--optimizer=adafactor", "--scale-parameter=off")

    def muon(self, hidden, nesterov):
        def make(w):
            matrices = torch.optim.Muon([w[name] for name in hidden if w[name].ndim == 2], lr=LR, weight_decay=0.1, momentum=0.95,
                                        nesterov=nesterov, adjust_lr_fn="match_rms_adamw")
            # torch's takes one matrix a parameter: each expert is one, a view of all of them.
            experts = [each.requires_grad_() for each in w["experts"].detach().unbind()] if "experts" in hidden else []
            stacked = torch.optim.Muon(experts, lr=LR, weight_decay=0.1, momentum=0.95, nesterov=nesterov,
                                       adjust_lr_fn="match_rms_adamw") if experts else None
            others = torch.optim.AdamW(self.groups(w, [name for name in w if name not in hidden]), lr=LR, betas=(0.9, 0.95), eps=1e-8)

            class Stacked:
                @staticmethod
                def step():
                    for each, gradient in zip(experts, w["experts"].grad):
                        each.grad = gradient
                    stacked.step()

            return [matrices, others, *([Stacked] if experts else [])]

        return make

    def test_muon(self):
        with mock.patch.object(_muon, "_zeropower_via_newtonschulz", orthogonal):
            for nesterov in (True, False):
                self.check(self.muon(("up", "down", "experts"), nesterov), "--optimizer=muon", f"--nesterov={'on' if nesterov else 'off'}")
            self.check(self.muon(("down", "experts"), True), "--optimizer=muon", "--adamw-params=u?")


if __name__ == "__main__":
    unittest.main()
