"""What the tests of ft.export share: a module through export, compilation and one step of SGD, against the same in PyTorch."""
import inspect
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional as F

from support import BIN, LEVEL, ROOT, environment, metrics_of

sys.path.insert(0, str(ROOT / "tools" / "python"))
import ft

B, T, V = 2, 16, 97
PLAIN = ("--optimizer=sgd", "--weight-decay=0", "--clip=0", f"--code={LEVEL}")


def ids(length=T, batch=B):
    return torch.randint(0, V, (batch, length))


def run_program(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment(), timeout=300)
    if done.returncode:
        raise AssertionError(f"{pathlib.Path(str(command[0])).name} ended with {done.returncode}: {done.stderr[-3000:]}")
    return done.stdout + done.stderr


def named(module, example):
    return dict(example) if isinstance(example, dict) else dict(zip(inspect.signature(module.forward).parameters, example))


def loss_of(result):
    return result if isinstance(result, torch.Tensor) else result["loss"] if hasattr(result, "keys") else result[0]


def stirred(module, seed=0):
    """With norms and biases that no model begins with."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    return module


class ExportTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ft-export-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def exported(self, module, example, name="model", **options):
        """The folder of model.mlir, weights and examples, and what ft.export gave."""
        made = ft.export(module, example, **options)
        folder = made.save(self.folder / name)
        names = options.get("names") or {}
        examples = {names.get(key, key): value for key, value in named(module, example).items()}
        made.save_examples(folder / "data.safetensors", examples)
        return folder, made

    def compiled(self, folder, *options, plan="plan.bin"):
        run_program(BIN / "ftc", "compile", folder / "model.mlir", *PLAIN, *(options or ("--strategy=full_shard",)), "-o", folder / plan)
        return folder / plan

    def step(self, plan, *options, ranks=1):
        """Metrics of a step of SGD, at rate 1 unless options say another, and the weights behind it."""
        folder = plan.parent
        log, weights = folder / f"{plan.stem}-{ranks}.jsonl", folder / f"{plan.stem}-{ranks}.safetensors"
        launcher = [BIN / "ftrun", "--standalone", f"--nproc-per-node={ranks}"] if ranks > 1 else []
        run_program(*launcher, BIN / "ftexec", plan, f"--data={folder}/data.safetensors", "--steps=1", "--shuffle=off", "--lr=1",
                    f"--init={folder}/weights.safetensors", f"--save-weights={weights}", f"--metrics={log}", "--progress=off", "--threads=1", *options)
        return metrics_of(log), load_file(weights)

    def check(self, module, example, **options):
        """Loss and every gradient, as the change of weights by a step of SGD, are PyTorch's: 1e-5 of the loss, 1e-4 of a gradient's norm."""
        stirred(module)
        folder, made = self.exported(module, example, **options)
        module.zero_grad()
        loss = loss_of(module(**example) if isinstance(example, dict) else module(*example))
        loss.backward()
        metrics, after = self.step(self.compiled(folder))
        self.assertAlmostEqual(metrics[0]["loss"], loss.item(), delta=1e-5 * abs(loss.item()))
        self.compare_gradients(dict(module.named_parameters()), made, after)
        return folder, made

    def compare_gradients(self, parameters, made, after):
        self.assertEqual(set(made.weights), set(after))
        gradients = {name: p.grad for name, p in parameters.items() if p.grad is not None}
        for name in gradients:
            self.assertTrue(name in made.weights or not gradients[name].any(), f"{name} has a gradient, and is no part of the model")
        largest = max(float(gradient.norm()) for gradient in gradients.values())
        for name, before in made.weights.items():
            wanted = gradients.get(name, torch.zeros_like(before))
            error = float((before.detach() - after[name] - wanted).norm())
            # The updated weights are rounded; gradients that cancel are noise of the others'.
            rounding = 1.2e-7 * float(before.detach().norm() + wanted.norm()) + 1e-7 * largest
            self.assertLessEqual(error, 1e-4 * float(wanted.norm()) + rounding, f"gradient of {name}, whose norm is {float(wanted.norm()):.3e}")

    def check_all(self, models):
        for name, make in models.items():
            with self.subTest(name):
                torch.manual_seed(1)
                module, example = make()
                self.check(module, example, name=name.replace(" ", "-"))
