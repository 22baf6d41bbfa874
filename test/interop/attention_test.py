"""Attention of padded and of packed sequences against PyTorch's, in losses, weights and their gradients."""

import itertools
import json
import subprocess
import unittest

import torch
from safetensors.torch import load_file, save_file

from support import BIN, InteropTest

BATCH, COUNT, T, WIDTH, HEADS, VOCABULARY, LR = 4, 16, 12, 16, 2, 32, 0.5

MODEL = """module {{
  ft.parameter @embed : tensor<{V}x{D}xf32> = #ft.init<normal, 1.0> {{layer = "h.0"}}
  ft.parameter @qkv : tensor<{D}x{Q}xf32> = #ft.init<normal, 0.3> {{layer = "h.0"}}
  ft.parameter @head : tensor<{V}x{D}xf32> = #ft.init<normal, 0.5> {{layer = "h.0"}}
  func.func @forward(%tokens: tensor<{B}x{T}xi32> {{ft.input = "tokens"}}, %targets: tensor<{B}x{T}xi32> {{ft.input = "targets"}},
                     %lengths: tensor<{B}xi32> {{ft.input = "lengths"}}, %segments: tensor<{B}x{T}xi32> {{ft.input = "segments"}}) -> tensor<f32> {{
    %embed = ft.get @embed {{layer = "h.0"}} : tensor<{V}x{D}xf32>
    %x = ft.embedding %tokens, %embed {{layer = "h.0"}} : (tensor<{B}x{T}xi32>, tensor<{V}x{D}xf32>) -> tensor<{B}x{T}x{D}xf32>
    %w = ft.get @qkv {{layer = "h.0"}} : tensor<{D}x{Q}xf32>
    %y = ft.matmul %x, %w {{layer = "h.0"}} : (tensor<{B}x{T}x{D}xf32>, tensor<{D}x{Q}xf32>) -> tensor<{B}x{T}x{Q}xf32>
    %q, %k, %v = ft.split %y {{layer = "h.0"}} : tensor<{B}x{T}x{Q}xf32> -> tensor<{B}x{T}x{D}xf32>, tensor<{B}x{T}x{D}xf32>, tensor<{B}x{T}x{D}xf32>
    %out, %lse = ft.attention %q, %k, %v {options} heads {H} kv_heads {H} {form} {{layer = "h.0"}} : (tensor<{B}x{T}x{D}xf32>, tensor<{B}x{T}x{D}xf32>, tensor<{B}x{T}x{D}xf32>{types}) -> (tensor<{B}x{T}x{D}xf32>, tensor<{B}x{H}x{T}xf32>)
    %head = ft.get @head {{layer = "h.0"}} : tensor<{V}x{D}xf32>
    %logits = ft.matmul %out, %head transpose_b {{layer = "h.0"}} : (tensor<{B}x{T}x{D}xf32>, tensor<{V}x{D}xf32>) -> tensor<{B}x{T}x{V}xf32>
    %loss = ft.cross_entropy %logits, %targets {{layer = "h.0"}} : (tensor<{B}x{T}x{V}xf32>, tensor<{B}x{T}xi32>) -> tensor<f32>
    return %loss : tensor<f32>
  }}
}}
"""


class Attention(InteropTest):
    def run_it(self, *command):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def data(self):
        torch.manual_seed(3)
        tokens, targets = (torch.randint(VOCABULARY, (COUNT, T), dtype=torch.int32) for _ in range(2))
        lengths = torch.randint(1, T + 1, (COUNT,), dtype=torch.int32)
        lengths[2], lengths[5] = 0, T  # an example of padding alone: PyTorch's rows of it are NaN, and count in no loss here
        segments = (torch.rand(COUNT, T) < 0.3).int().cumsum(1).int() - 2
        targets[torch.arange(T) >= lengths[:, None]] = -100
        return {"tokens": tokens, "targets": targets, "lengths": lengths, "segments": segments}

    def check(self, lengths, segments, causal):
        types = (f", tensor<{BATCH}xi32>" if lengths else "") + (f", tensor<{BATCH}x{T}xi32>" if segments else "")
        options = " ".join(["lengths %lengths"] * lengths + ["segments %segments"] * segments)
        model, plan, weights, out = (self.folder / name for name in ("model.mlir", "plan.bin", "w.safetensors", "m.jsonl"))
        model.write_text(MODEL.format(B=BATCH, T=T, D=WIDTH, Q=3 * WIDTH, H=HEADS, V=VOCABULARY, types=types, options=options,
                                      form="causal" if causal else ""))
        data = self.data()
        save_file(data, self.folder / "train.safetensors")
        self.run_it(BIN / "ftc", "compile", model, "--strategy=full_shard", "--optimizer=sgd", "--clip=0", "--weight-decay=0", "-o", plan)
        run = (BIN / "ftexec", plan, f"--data={self.folder}/train.safetensors", "--progress=off")
        self.run_it(*run, "--steps=0", f"--save-weights={weights}")
        w = {name: tensor.double().requires_grad_() for name, tensor in load_file(weights).items()}
        out.unlink(missing_ok=True)
        self.run_it(*run, "--steps=8", f"--lr={LR}", "--shuffle=off", f"--metrics={out}", f"--save-weights={weights}")
        for line in map(json.loads, out.read_text().splitlines()):
            if "loss" not in line:
                continue
            first = line["step"] * BATCH % COUNT
            part = {name: tensor[first:first + BATCH] for name, tensor in data.items()}
            seen = torch.ones(BATCH, 1, T, T, dtype=torch.bool)
            if lengths:
                seen &= (torch.arange(T) < part["lengths"][:, None])[:, None, None, :]
            if segments:
                seen &= (part["segments"][:, :, None] == part["segments"][:, None, :])[:, None]
            if causal:
                seen &= torch.ones(T, T, dtype=torch.bool).tril()
            q, k, v = ((w["embed"][part["tokens"]] @ w["qkv"]).view(BATCH, T, 3, HEADS, -1).permute(2, 0, 3, 1, 4))
            rows = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
            rows = rows.transpose(1, 2).reshape(BATCH, T, WIDTH)
            rows = torch.where(seen.any(-1).transpose(1, 2), rows, 0)  # a row that sees no key is 0 here
            targets = part["targets"].long()
            loss = torch.nn.functional.cross_entropy((rows @ w["head"].T).view(-1, VOCABULARY), targets.view(-1))
            self.assertAlmostEqual(line["loss"], loss.item(), delta=2e-5)
            for parameter, gradient in zip(w.values(), torch.autograd.grad(loss, list(w.values()))):
                self.assertFalse(gradient.isnan().any())
                parameter.data -= LR * gradient
        for name, tensor in load_file(weights).items():
            torch.testing.assert_close(tensor.double(), w[name].data, atol=2e-5, rtol=2e-5)

    def test_losses_and_weights_are_those_of_pytorch(self):
        for lengths, segments, causal in itertools.product((False, True), (False, True), (False, True)):
            if lengths or segments:
                with self.subTest(lengths=lengths, segments=segments, causal=causal):
                    self.check(lengths, segments, causal)


if __name__ == "__main__":
    unittest.main()
