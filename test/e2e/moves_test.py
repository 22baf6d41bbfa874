"""Graphs that mostly move elements, drawn at random: no strategy and no unit changes a bit, and nothing is read before it is made or after it is given up.

Each layer turns, cuts, joins and repeats its own parameters, what it is given and what it made of them, and takes means of some of that.
"""

import math
import random
import unittest

from harness import BIN, EndToEnd, metrics

BATCH, LENGTH, WIDTH = 3, 8, 16
SHAPE = (BATCH, LENGTH, WIDTH)
WAYS = (("no_shard",), ("no_shard", "--cluster-ops=1"), ("full_shard", "--offload=activations,parameters", "--remat=every_n:2"), ("shard_grad_op", "--wrap=none"), ("full_shard", "--remat=full"))


def tensor(shape, element="f32"):
    return f"tensor<{''.join(f'{extent}x' for extent in shape)}{element}>"


class Graph:
    def __init__(self, seed):
        self.draw, self.lines, self.parameters, self.count, self.layer = random.Random(seed), [], [], 0, "embed"

    def op(self, text, types, shape):
        """A value and its shape."""
        self.count += 1
        self.lines.append(f'    %{self.count} = ft.{text} {{layer = "{self.layer}"}} : {types}')
        return f"%{self.count}", tuple(shape)

    def moved(self, value, shape):
        to = lambda text, new: self.op(text, f"{tensor(shape)} -> {tensor(new)}", new)
        kind = self.draw.choice(("reshape", "slice", "transpose", "broadcast", "concat"))
        if kind == "reshape":
            left, new = math.prod(shape), []
            for _ in range(self.draw.randrange(1, 4)):
                new.append(self.draw.choice([extent for extent in range(1, left + 1) if left % extent == 0]))
                left //= new[-1]
            new.append(left)
            self.draw.shuffle(new)
            return to(f"reshape {value}", new)
        if kind == "slice":
            begin = [self.draw.randrange(0, extent // 3 + 1) for extent in shape]
            return to(f"slice {value} at {begin}", [max(1, extent - at - self.draw.randrange(0, extent // 4 + 1)) for extent, at in zip(shape, begin)])
        if kind == "transpose":
            order = self.draw.sample(range(len(shape)), len(shape))
            return to(f"transpose {value} {order}", [shape[axis] for axis in order])
        if kind == "broadcast":
            return to(f"broadcast {value}", (2, *(3 if extent == 1 else extent for extent in shape)))
        axis = self.draw.randrange(len(shape))
        new = [2 * extent if k == axis else extent for k, extent in enumerate(shape)]
        return self.op(f"concat {value}, {value} axis {axis}", f"{tensor(shape)}, {tensor(shape)} -> {tensor(new)}", new)

    def mean(self, value, shape):
        """Of all elements, in each place of SHAPE."""
        size = math.prod(shape)
        flat, _ = self.op(f"reshape {value}", f"{tensor(shape)} -> {tensor([size])}", [size])
        total, _ = self.op(f'reduce "sum" {flat} over [0]', f"{tensor([size])} -> {tensor([])}", [])
        mean, _ = self.op(f"scale {total}, {1 / size!r}", tensor([]), [])
        return self.op(f"broadcast {mean}", f"{tensor([])} -> {tensor(SHAPE)}", SHAPE)[0]

    def parameter(self, name, shape):
        self.parameters.append(f'  ft.parameter @{name} : {tensor(shape)} = #ft.init<normal, 0.5> {{layer = "{self.layer}"}}')
        return self.op(f"get @{name}", tensor(shape), shape)

    def block(self, x, number):
        self.layer = f"h.{number}"
        w, g = self.parameter(f"w{number}", (WIDTH, WIDTH)), self.parameter(f"g{number}", (WIDTH,))
        normed = self.op(f"rms_norm {x}, {g[0]} eps 1.0e-05", f"{tensor(SHAPE)}, {tensor((WIDTH,))}", SHAPE)
        y = self.op(f"matmul {normed[0]}, {w[0]}", f"({tensor(SHAPE)}, {tensor((WIDTH, WIDTH))}) -> {tensor(SHAPE)}", SHAPE)
        known = [w, g, normed, y]
        for _ in range(8):
            value = self.draw.choice(known)
            for _ in range(self.draw.randrange(1, 4)):
                if math.prod(value[1]) < 6000 and len(value[1]) < 6:
                    known.append(value := self.moved(*value))
            if self.draw.random() < 0.5:
                known.append(self.op(f"{self.draw.choice(('tanh', 'neg', 'square', 'softmax'))} {value[0]}", tensor(value[1]), value[1]))
        total = y[0]
        for value in self.draw.sample(known, 5):
            total, _ = self.op(f"add {total}, {self.mean(*value)}", f"{tensor(SHAPE)}, {tensor(SHAPE)}", SHAPE)
        bent, _ = self.op(f"tanh {total}", tensor(SHAPE), SHAPE)
        return self.op(f"add {x}, {bent}", f"{tensor(SHAPE)}, {tensor(SHAPE)}", SHAPE)[0]

    def text(self):
        ids, table, logits = tensor((BATCH, LENGTH), "i32"), tensor((256, WIDTH)), tensor((BATCH, LENGTH, 256))
        t, _ = self.parameter("table", (256, WIDTH))
        x, _ = self.op(f"embedding %tokens, {t}", f"({ids}, {table}) -> {tensor(SHAPE)}", SHAPE)
        for number in range(2):
            x = self.block(x, number)
        self.layer = "head"
        y, _ = self.op(f"matmul {x}, {t} transpose_b", f"({tensor(SHAPE)}, {table}) -> {logits}", ())
        loss, _ = self.op(f"cross_entropy {y}, %targets", f"({logits}, {ids}) -> tensor<f32>", ())
        return "\n".join(["module attributes {ft.vocab_size = 256 : i64} {", *self.parameters, f"  func.func @forward(%tokens: {ids}, %targets: {ids}) -> tensor<f32> {{",
                          *self.lines, f"    return {loss} : tensor<f32>", "  }", "}", ""])


class Pieces(Graph):
    """Rows of 128 columns that are normalized, cut, computed on side by side and joined, in halves and in parts that are not alike."""

    def moved(self, value, shape):
        return super().moved(value, shape) if shape[-1] < 4 or self.draw.random() < 0.5 else (self.cut_and_joined(value, shape), shape)

    def cut_and_joined(self, value, shape):
        cut = shape[-1] // 2 if shape[-1] % 2 == 0 and self.draw.random() < 0.5 else self.draw.randrange(1, shape[-1])
        parts = []
        for begin, end in ((0, cut), (cut, shape[-1])):
            new = (*shape[:-1], end - begin)
            part, _ = self.op(f"slice {value} at {[0] * (len(shape) - 1) + [begin]}", f"{tensor(shape)} -> {tensor(new)}", new)
            parts.append((self.op(f"{self.draw.choice(('tanh', 'neg', 'square'))} {part}", tensor(new), new)[0] if self.draw.random() < 0.7 else part, new))
        if self.draw.random() < 0.5 and 2 * cut == shape[-1]:  # as rotary embeddings do
            (a, new), (b, _) = parts
            parts = [(self.op(f"{name} {a}, {b}", f"{tensor(new)}, {tensor(new)}", new)[0], new) for name in ("sub", "mul")]
        self.draw.shuffle(parts)
        return self.op(f"concat {', '.join(name for name, _ in parts)}", f"{', '.join(tensor(new) for _, new in parts)} -> {tensor(shape)}", shape)[0]

    def block(self, x, number):
        self.layer = f"h.{number}"
        rows = (math.prod(SHAPE) // 128, 128)
        value, _ = self.op(f"reshape {x}", f"{tensor(SHAPE)} -> {tensor(rows)}", rows)
        gain = self.parameter(f"gain{number}", (128,))[0]
        value, _ = self.op(f"rms_norm {value}, {gain} eps 1.0e-05", f"{tensor(rows)}, {tensor((128,))}", rows)
        for _ in range(2):
            value = self.cut_and_joined(value, rows)
        if self.draw.random() < 0.5:
            value, _ = self.op(f"softmax {value}", tensor(rows), rows)
        back, _ = self.op(f"reshape {value}", f"{tensor(rows)} -> {tensor(SHAPE)}", SHAPE)
        return super().block(self.op(f"add {x}, {back}", f"{tensor(SHAPE)}, {tensor(SHAPE)}", SHAPE)[0], number)


class Moves(EndToEnd):
    def steps(self, model, way, *options):
        plan, rows = self.dir / "plan.bin", self.dir / "metrics.jsonl"
        self.check("ftc", "compile", model, f"--strategy={way[0]}", *way[1:], *options, "-o", plan)
        self.check("ftc", "verify", plan)
        rows.unlink(missing_ok=True)
        self.check("ftrun", "--standalone", "--nproc-per-node=2", BIN / "ftexec", plan, f"--data={self.text}", "--steps=2", "--lr=0.01", "--shuffle=off",
                   "--threads=1", "--progress=off", f"--metrics={rows}")
        return [(row["loss"], row["grad_norm"]) for row in metrics(rows)]

    def test_they_compile(self):
        model, plan = self.dir / "moves.mlir", self.dir / "plan.bin"
        for kind, seed in [(Graph, seed) for seed in range(40)] + [(Pieces, seed) for seed in range(20)]:
            model.write_text(kind(seed).text())
            for way in WAYS:
                with self.subTest(kind=kind.__name__, seed=seed, way=way):
                    self.check("ftc", "compile", model, f"--strategy={way[0]}", *way[1:], "--code=none", "-o", plan)

    def test_no_way_changes_a_bit(self):
        model = self.dir / "moves.mlir"
        for kind, seed in [(Graph, seed) for seed in (1, 4, 7, 22, 25, 28)] + [(Pieces, seed) for seed in range(6)]:
            model.write_text(kind(seed).text())
            for options in ((), ("--mixed-precision=bf16", "--micro-steps=2"))[:1 + seed % 2]:
                first, *others = (self.steps(model, way, *options) for way in WAYS)
                for other in others:
                    self.assertEqual(first, other, (kind, seed, options))


if __name__ == "__main__":
    unittest.main()
