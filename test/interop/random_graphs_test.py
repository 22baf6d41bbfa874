"""Random graphs of primitives, compiled with random strategies, recomputation, offload and precision: loss and gradients are
PyTorch's in float64, and no option changes a bit. FT_RANDOM_GRAPHS=1000 tries so many, from FT_RANDOM_SEED on."""
import math
import os
import pathlib
import random
import subprocess
import tempfile
import unittest

import safetensors.torch
import torch

from random_graph import Kink, RandomGraph
from support import BIN, LEVEL, environment, metrics_of

GRAPHS, FIRST = int(os.environ.get("FT_RANDOM_GRAPHS", "60")), int(os.environ.get("FT_RANDOM_SEED", "1"))
STRATEGIES = ("no_shard", "zero1", "shard_grad_op", "full_shard", "hybrid_shard", "hybrid_shard_zero2")
REMAT = ("none", "full", "every_n:2", "segments:1")
OFFLOAD = ("none", "activations", "optimizer,parameters", "optimizer:step")


class RandomGraphs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def run_program(self, *command):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment(), timeout=120)
        self.assertEqual(done.returncode, 0, f"{' '.join(map(str, command))}\n{done.stderr}\n{self.about}")

    def drawn(self, seed):
        """A graph, its parameters and data of `world` ranks, at a place where it is smooth; gradients by PyTorch."""
        world = 1 + seed % 2
        for attempt in range(1000):
            graph = RandomGraph(seed * 1000 + attempt)
            generator = torch.Generator().manual_seed(seed * 1000 + attempt)
            parameters = {name: torch.randn(shape, generator=generator) * 0.5 for name, (shape, _) in graph.parameters.items()}
            text = bytes(torch.randint(32, 127, (64,), generator=generator).tolist())
            # Parameters as far off as f32 rounds: where that alone moves a gradient, none in f32 can be held to one in f64.
            moved = {name: value.double() * (1 + 2**-24 * torch.randn(value.shape, generator=generator)) for name, value in parameters.items()}
            try:
                loss, gradients = self.by_pytorch(graph, parameters, text, world)
                _, others = self.by_pytorch(graph, moved, text, world)
            except Kink:
                continue
            largest = max(float(g.abs().max()) for g in gradients.values() if g is not None)
            apart = max(float((gradients[name] - others[name]).abs().max()) for name in gradients if gradients[name] is not None)
            if math.isfinite(loss) and apart <= 2e-6 * largest:
                return graph, parameters, world, text, loss, gradients
        self.fail(f"graph {seed} has no smooth place")

    @staticmethod
    def by_pytorch(graph, parameters, text, world):
        """Loss and gradients in float64: the mean over ranks."""
        leaves = {name: value.double().requires_grad_() for name, value in parameters.items()}
        loss = 0
        for rank in range(world):
            rows = [list(text[(rank * graph.batch + i) * graph.positions:][:graph.positions + 1]) for i in range(graph.batch)]
            ids = torch.tensor(rows)
            loss = loss + graph.loss(leaves, ids[:, :-1], ids[:, 1:]) / world
        gradients = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
        return float(loss.detach()), dict(zip(leaves, gradients))

    def step(self, model, world, init, text, options, steps, kernels="generated"):
        """Losses and the weights after one step of plain descent at rate 1."""
        plan, weights, log = self.dir / "plan.bin", self.dir / "weights.safetensors", self.dir / "metrics.jsonl"
        log.unlink(missing_ok=True)
        self.run_program(BIN / "ftc", "compile", model, "--optimizer=sgd", "--weight-decay=0", "--clip=0", f"--code={'none' if kernels == 'reference' else LEVEL}",
                         *options, "-o", plan)
        self.run_program(BIN / "ftrun", f"--nproc-per-node={world}", "--standalone", BIN / "ftexec", plan, f"--data={text}",
                         f"--steps={steps}", "--shuffle=off", "--lr=1", f"--init={init}", f"--save-weights={weights}",
                         f"--metrics={log}", "--progress=off", "--threads=1", f"--kernels={kernels}")
        return [row["loss"] for row in metrics_of(log)], safetensors.torch.load_file(weights)

    def options(self, choose, world):
        found = [f"--strategy={choose.choice(STRATEGIES)}", f"--remat={choose.choice(REMAT)}", f"--offload={choose.choice(OFFLOAD)}",
                 f"--prefetch={choose.choice(('none', 'pre', 'post', 'auto'))}", f"--cluster-ops={choose.choice((1, 2, 5, 64))}"]
        return found + (["--mesh=replica:1,shard:2"] if world == 2 and "hybrid" in found[0] else [])

    def test_loss_and_gradients_are_those_of_pytorch(self):
        for seed in range(FIRST, FIRST + GRAPHS):
            with self.subTest(seed=seed):
                self.check(seed)

    def check(self, seed):
        graph, parameters, world, text, loss, gradients = self.drawn(seed)
        model, init, data = self.dir / "model.mlir", self.dir / "init.safetensors", self.dir / "data.txt"
        self.about = graph.text
        model.write_text(graph.text)
        data.write_bytes(text)
        safetensors.torch.save_file(parameters, init)
        choose = random.Random(seed)
        options = self.options(choose, world)
        losses, weights = self.step(model, world, init, data, options, 1)
        self.assertAlmostEqual(losses[0], loss, delta=1e-5 * max(1, abs(loss)), msg=f"{options}\n{graph.text}")
        largest = max(float(g.abs().max()) for g in gradients.values() if g is not None)
        for name, value in parameters.items():
            wanted = torch.zeros_like(value, dtype=torch.float64) if gradients[name] is None else gradients[name]
            got = value.double() - weights[name].double()
            # Rounding of the updated weights, and of the gradient.
            error = float((got - wanted).abs().max())
            self.assertLess(error, 1e-5 * max(largest, float(wanted.abs().max())) + 2e-7 * float(value.abs().max() + wanted.abs().max()),
                            f"gradient of {name}\n{options}\n{graph.text}")
        # Between the two stages of hybrid sharding a sum in 16 bits would be rounded.
        others = self.options(choose, world)
        precision = [f"--mixed-precision={choose.choice(('no', 'bf16', 'fp16'))}"]
        if any("hybrid" in option for option in options + others):
            precision.append("--reduce-dtype=fp32")
        first = self.step(model, world, init, data, [*options, *precision], 2)
        second = self.step(model, world, init, data, [*others, *precision], 2, choose.choice(("generated", "reference")))
        self.assertEqual(first[0], second[0], f"{options}\n{graph.text}")
        for name, value in first[1].items():
            self.assertTrue(torch.equal(value, second[1][name]), f"{name} in {precision}\n{graph.text}")

    def test_ties_and_ends(self):
        """Where a gradient is a matter of choice it is PyTorch's. a and b hold equal elements, zeros and ends of the clamp."""
        a = torch.tensor([[0.0, 1.0, 1.0, -0.5], [-0.0, 2.0, 2.0, 2.0]])
        b = torch.tensor([[0.0, 1.0, 0.5, 1.0], [0.0, 2.0, 3.0, -0.5]])
        t, rows = "tensor<2x4xf32>", "tensor<2xf32>"
        cases = {
            f"ft.maximum %a, %b : {t}": torch.maximum, f"ft.minimum %a, %b : {t}": torch.minimum,
            f"ft.abs %a : {t}": lambda a, b: a.abs(), f"ft.relu %a : {t}": lambda a, b: a.relu(),
            f"ft.sign %a : {t}": lambda a, b: a.sign(), f"ft.clamp %a, -0.5, 1.0 : {t}": lambda a, b: a.clamp(-0.5, 1.0),
            f'ft.reduce "max" %a over [1] : {t} -> {rows}': lambda a, b: a.amax(1),
            f'ft.reduce "min" %b over [0] : {t} -> tensor<4xf32>': lambda a, b: b.amin(0),
        }
        self.about = ""
        model, init, data = self.dir / "model.mlir", self.dir / "init.safetensors", self.dir / "data.txt"
        data.write_bytes(b"text" * 8)
        safetensors.torch.save_file({"a": a, "b": b}, init)
        for line, function in cases.items():
            with self.subTest(line):
                x, y = a.clone().requires_grad_(), b.clone().requires_grad_()
                result = function(x, y)
                wanted = torch.autograd.grad(result.square().sum() + x.sum() + y.sum(), [x, y])
                of = "tensor<" + "x".join(map(str, result.shape)) + "xf32>"
                every = list(range(result.dim()))
                model.write_text(f"""module attributes {{ft.vocab_size = 256 : i64}} {{
  ft.parameter @a : {t} = #ft.init<normal, 1.0>
  ft.parameter @b : {t} = #ft.init<normal, 1.0>
  func.func @forward(%tokens: tensor<1x2xi32>, %targets: tensor<1x2xi32>) -> tensor<f32> {{
    %a = ft.get @a : {t}
    %b = ft.get @b : {t}
    %r = {line}
    %q = ft.square %r : {of}
    %s = ft.reduce "sum" %q over {every} : {of} -> tensor<f32>
    %both = ft.add %a, %b : {t}
    %t = ft.reduce "sum" %both over [0, 1] : {t} -> tensor<f32>
    %loss = ft.add %s, %t : tensor<f32>
    return %loss : tensor<f32>
  }}
}}
""")
                weights = self.step(model, 1, init, data, ["--strategy=no_shard"], 1)[1]
                self.assertTrue(torch.equal(a - weights["a"], wanted[0]), f"{a - weights['a']} {wanted[0]}")
                self.assertTrue(torch.equal(b - weights["b"], wanted[1]), f"{b - weights['b']} {wanted[1]}")


if __name__ == "__main__":
    unittest.main()
