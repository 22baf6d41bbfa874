"""A classifier with an input of every type, on examples that safetensors writes, against the same in PyTorch."""

import json
import subprocess
import unittest

import torch
from safetensors.torch import load_file, save_file

from support import BIN, ROOT, InteropTest

BATCH, COUNT = 8, 64


class Signatures(InteropTest):
    def run_it(self, *command):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_losses_and_accuracy_are_those_of_pytorch(self):
        torch.manual_seed(1)
        data = {"pixels": torch.randn(COUNT, 3, 2, 2), "extra": torch.randn(COUNT, 4).bfloat16(), "group": torch.randint(5, (COUNT,), dtype=torch.int32),
                "keep": torch.rand(COUNT, 16) < 0.8, "labels": torch.randint(4, (COUNT,))}
        data["labels"][3], shift = -100, torch.linspace(-0.5, 0.5, 16)
        save_file({**data, "shift": shift}, self.folder / "train.safetensors", metadata={"made": "by a test"})
        plan, weights, out = self.folder / "plan.bin", self.folder / "w.safetensors", self.folder / "m.jsonl"
        self.run_it(BIN / "ftc", "compile", ROOT / "test/e2e/classifier.mlir", "--strategy=full_shard", "--optimizer=sgd", "--clip=0",
                   "--weight-decay=0", "-o", plan)
        run = (BIN / "ftexec", plan, f"--data={self.folder}/train.safetensors", "--progress=off")
        self.run_it(*run, "--steps=0", f"--save-weights={weights}")
        w = {name: tensor.double().requires_grad_() for name, tensor in load_file(weights).items()}

        def forward(rows):
            part = {name: tensor[rows] for name, tensor in data.items()}
            h = part["pixels"].double().flatten(1) @ w["w1"] + part["extra"].double() @ w["w3"] + w["table"][part["group"]] + shift
            return torch.where(part["keep"], h.relu(), 0) @ w["w2"], part["labels"]

        self.run_it(*run, "--steps=12", "--lr=0.3", "--shuffle=off", f"--metrics={out}", f"--eval-data={self.folder}/train.safetensors")
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        for line in (line for line in lines if "loss" in line):
            first = line["step"] * BATCH % COUNT
            logits, labels = forward(slice(first, first + BATCH))
            loss = torch.nn.functional.cross_entropy(logits, labels)
            self.assertAlmostEqual(line["loss"], loss.item(), delta=2e-5)
            for parameter, gradient in zip(w.values(), torch.autograd.grad(loss, list(w.values()))):
                parameter.data -= 0.3 * gradient
        (evaluated,) = [line for line in lines if "eval_loss" in line]
        logits, labels = forward(slice(None))
        self.assertEqual(evaluated["eval_tokens"], COUNT - 1)
        self.assertAlmostEqual(evaluated["eval_loss"], torch.nn.functional.cross_entropy(logits, labels).item(), delta=2e-5)
        # Of each batch the part of its 8 examples, weighing as many labels as count.
        hits = (logits.argmax(1) == labels).double().view(-1, BATCH).mean(1)
        counted = (labels >= 0).double().view(-1, BATCH).sum(1)
        self.assertAlmostEqual(evaluated["eval_accuracy"], ((hits * counted).sum() / counted.sum()).item(), places=6)


if __name__ == "__main__":
    unittest.main()
