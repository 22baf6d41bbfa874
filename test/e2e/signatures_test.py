"""Models of any inputs: a classifier of pictures with an input of every type, trained from safetensors files.

Its losses are compared with a plain loop over Python's floats; the bits of a run with those of all strategies and of runs that
were stopped and went on, at other numbers of ranks too.
"""

import json
import math
import pathlib
import random
import struct
import unittest

from checkpoint_runs import checkpoints, tensors, timeless
from harness import BIN, EndToEnd, metrics, run

MODEL = pathlib.Path(__file__).with_name("classifier.mlir")
BATCH, COUNT, CLASSES, GROUPS, WIDTH = 8, 100, 4, 5, 16
CODES = {"F32": "f", "I32": "i", "I64": "q", "BOOL": "B", "BF16": "H"}
# Name -> type and shape of an example.
EXAMPLE = {"pixels": ("F32", (3, 2, 2)), "extra": ("BF16", (4,)), "group": ("I32", ()), "keep": ("BOOL", (16,)), "labels": ("I64", ())}
SGD = ("--optimizer=sgd", "--clip=0", "--weight-decay=0")


def write(path, stored):
    """Name -> (type, shape, values)."""
    head, body = {}, b""
    for name, (dtype, shape, values) in stored.items():
        data = struct.pack(f"<{len(values)}{CODES[dtype]}", *values)
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)
    return path


def single(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def bf16(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


def examples(count, seed=1):
    draw = random.Random(seed)
    values = {"F32": lambda: single(draw.gauss(0, 1)), "BF16": lambda: struct.unpack("<I", struct.pack("<f", draw.gauss(0, 1)))[0] >> 16,
              "BOOL": lambda: int(draw.random() < 0.8), "I32": lambda: draw.randrange(GROUPS), "I64": lambda: draw.randrange(CLASSES)}
    stored = {name: (dtype, (count, *shape), [values[dtype]() for _ in range(count * math.prod(shape))])
              for name, (dtype, shape) in EXAMPLE.items()}
    stored["shift"] = ("F32", (WIDTH,), [single(i / 16 - 0.5) for i in range(WIDTH)])
    return stored


def part(stored, begin, end):
    """Some of the examples."""
    found = {}
    for name, (dtype, shape, values) in stored.items():
        if name == "shift":
            found[name] = stored[name]
            continue
        size = math.prod(shape[1:])
        found[name] = (dtype, (end - begin, *shape[1:]), values[begin * size:end * size])
    return found


class Reference:
    """The same model as a loop over examples, in float64."""

    def __init__(self, weights, stored):
        self.w = {name: [struct.unpack(f"<{shape[1]}f", raw[4 * shape[1] * i:][:4 * shape[1]]) for i in range(shape[0])]
                  for name, (_, shape, raw) in weights.items()}
        self.w = {name: [list(row) for row in rows] for name, rows in self.w.items()}
        self.stored = stored

    def row(self, name, k):
        size = math.prod(EXAMPLE[name][1])
        return self.stored[name][2][k * size:(k + 1) * size]

    def forward(self, k):
        x, e = self.row("pixels", k), [bf16(bits) for bits in self.row("extra", k)]
        keep, group, shift = self.row("keep", k), self.row("group", k)[0], self.stored["shift"][2]
        h = [sum(x[i] * self.w["w1"][i][j] for i in range(12)) + sum(e[i] * self.w["w3"][i][j] for i in range(4))
             + self.w["table"][group][j] + shift[j] for j in range(WIDTH)]
        k_ = [max(h[j], 0) if keep[j] else 0 for j in range(WIDTH)]
        y = [sum(k_[j] * self.w["w2"][j][c] for j in range(WIDTH)) for c in range(CLASSES)]
        top = max(y)
        total = sum(math.exp(v - top) for v in y)
        p = [math.exp(v - top) / total for v in y]
        return x, e, group, h, k_, keep, y, p

    def evaluate(self, indices):
        loss = hits = kept = 0
        for k in indices:
            *_, keep, y, p = self.forward(k)
            label = self.row("labels", k)[0]
            loss -= math.log(p[label])
            hits += y.index(max(y)) == label
            kept += sum(keep)
        return loss / len(indices), hits / len(indices), kept / len(indices) / WIDTH

    def step(self, indices, lr):
        """The mean loss before an update by the mean gradient."""
        grad = {name: [[0.0] * len(rows[0]) for _ in rows] for name, rows in self.w.items()}
        loss = 0
        for k in indices:
            x, e, group, h, k_, keep, _, p = self.forward(k)
            label = self.row("labels", k)[0]
            loss -= math.log(p[label]) / len(indices)
            dy = [(p[c] - (c == label)) / len(indices) for c in range(CLASSES)]
            for j in range(WIDTH):
                for c in range(CLASSES):
                    grad["w2"][j][c] += k_[j] * dy[c]
                if not keep[j] or h[j] <= 0:
                    continue
                dh = sum(self.w["w2"][j][c] * dy[c] for c in range(CLASSES))
                grad["table"][group][j] += dh
                for i in range(12):
                    grad["w1"][i][j] += x[i] * dh
                for i in range(4):
                    grad["w3"][i][j] += e[i] * dh
        for name, rows in self.w.items():
            for row, down in zip(rows, grad[name]):
                for i, value in enumerate(down):
                    row[i] -= lr * value
        return loss


class Signatures(EndToEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.stored = examples(COUNT)
        cls.file = write(cls.shared / "data.safetensors", cls.stored)
        cls.compiled = {}

    def classifier(self, strategy="full_shard", *options):
        key = (strategy, *options)
        if key not in self.compiled:
            self.compiled[key] = self.shared / f"{len(self.compiled)}.bin"
            self.check("ftc", "compile", MODEL, f"--strategy={strategy}", *options, "-o", self.compiled[key])
        return self.compiled[key]

    def run_it(self, plan, world, *options, data=None):
        out = self.dir / "metrics.jsonl"
        out.unlink(missing_ok=True)
        self.check("ftrun", f"--nproc-per-node={world}", "--standalone", BIN / "ftexec", plan, f"--data={data or self.file}",
                   f"--metrics={out}", "--progress=off", *options)
        return timeless(metrics(out))

    def initial(self, plan):
        path = self.dir / "initial"
        path.mkdir()
        self.check("ftexec", plan, f"--data={self.file}", "--steps=0", f"--save-weights={path}/w.safetensors", "--progress=off")
        return tensors(path)

    def test_equals_a_loop_over_floats(self):
        plan = self.classifier("full_shard", *SGD)
        weights = self.initial(plan)
        for world in (1, 2):
            reference = Reference(weights, self.stored)
            for row in self.run_it(plan, world, "--shuffle=off", "--lr=0.3", "--steps=20"):
                first = row["step"] * BATCH * world
                expected = reference.step([k % COUNT for k in range(first, first + BATCH * world)], 0.3)
                self.assertAlmostEqual(row["loss"], expected, delta=2e-5 * max(1, expected), msg=(world, row["step"]))

    def test_outputs_of_evaluation(self):
        """Means over whole batches of all ranks, whatever their number; the last of 100 examples are in none."""
        plan = self.classifier("full_shard", *SGD)
        reference = Reference(self.initial(plan), self.stored)
        for world, seen in ((1, 96), (2, 96), (3, 96), (4, 96)):
            (row,) = self.run_it(plan, world, f"--eval-data={self.file}", "--steps=0")
            loss, accuracy, kept = reference.evaluate(range(seen))
            self.assertEqual(row["eval_tokens"], seen)
            self.assertAlmostEqual(row["eval_loss"], loss, places=5)
            self.assertAlmostEqual(row["eval_accuracy"], accuracy, places=6)
            self.assertAlmostEqual(row["eval_kept"], kept, places=6)
        done = self.check("ftexec", plan, f"--data={self.file}", f"--eval-data={self.file}", "--steps=0")
        self.assertIn("the last 4 of 100 examples of --eval-data fill no batch", done.stderr)
        self.assertRegex(done.stdout, r"eval loss \d\.\d+  accuracy \d\.\d+  kept 0\.\d+  over 96 examples\n")
        few = write(self.dir / "few.safetensors", part(self.stored, 0, 7))
        done = run("ftexec", plan, f"--data={self.file}", f"--eval-data={few}", "--steps=0")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (65, 1), done.stderr)
        self.assertIn("--eval-data has 7 examples, less than a batch of all ranks, 8", done.stderr)

    def test_derivatives_that_read_the_loss_read_that_of_their_rank(self):
        """A root: of equal batches two and four ranks make what one makes."""
        text = MODEL.read_text()
        (line,) = (line for line in text.splitlines(keepends=True) if "ft.cross_entropy" in line)
        scalar, last = "tensor<f32>", '{layer = "head"}'
        root = self.dir / "root.mlir"
        root.write_text(text.replace(line, f"""
          %squares = ft.mul %y, %y {last} : tensor<8x4xf32>, tensor<8x4xf32>
          %total = ft.reduce "sum" %squares over [0, 1] {last} : tensor<8x4xf32> -> {scalar}
          %mean = ft.scale %total, 0.03125 {last} : {scalar}
          %loss = ft.sqrt %mean {last} : {scalar}
        """))
        same = write(self.dir / "same.safetensors", {name: tensor if name == "shift" else (tensor[0], (COUNT, *tensor[1][1:]),
                     tensor[2][:math.prod(tensor[1][1:])] * COUNT) for name, tensor in self.stored.items()})
        for strategy in ("no_shard", "full_shard"):
            plan = self.dir / f"{strategy}.bin"
            self.check("ftc", "compile", root, f"--strategy={strategy}", *SGD, "-o", plan)
            one, two, four = (self.run_it(plan, world, "--lr=0.3", "--steps=5", data=same) for world in (1, 2, 4))
            self.assertGreater(one[0]["loss"], one[-1]["loss"])
            for others in (two, four):
                for name in ("loss", "grad_norm"):
                    self.assertEqual([row[name] for row in others], [row[name] for row in one], strategy)

    def test_outputs_change_no_bit_of_training(self):
        text = MODEL.read_text()
        bare = self.dir / "bare.mlir"
        text = text.replace('(tensor<f32>, tensor<f32> {ft.output = "accuracy"}, tensor<f32> {ft.output = "kept"})', "tensor<f32>")
        bare.write_text(text.replace("return %loss, %accuracy, %kept : tensor<f32>, tensor<f32>, tensor<f32>", "return %loss : tensor<f32>"))
        plan = self.dir / "bare.bin"
        self.check("ftc", "compile", bare, "--strategy=full_shard", "-o", plan)
        steps = ("--steps=5", "--lr=0.02")
        bits = lambda rows: [(row["loss"], row["grad_norm"]) for row in rows]
        self.assertEqual(bits(self.run_it(plan, 1, *steps)), bits(self.run_it(self.classifier(), 1, *steps)))

    def test_strategies_give_the_same_bits(self):
        for options in ((), ("--mixed-precision=bf16",), ("--mixed-precision=fp16",), ("--micro-steps=3", "--remat=full")):
            found = []
            for strategy in ("no_shard", "zero1", "shard_grad_op", "full_shard"):
                weights = self.dir / strategy
                rows = self.run_it(self.classifier(strategy, *options), 2, "--steps=12", "--lr=0.02", f"--save-weights={weights}",
                                   f"--eval-data={self.file}", "--eval-every=5")
                found.append(([{k: v for k, v in row.items() if "bytes" not in k} for row in rows], weights.read_bytes()))
            self.assertEqual(found, found[:1] * 4, options)
            losses = [row["loss"] for row in found[0][0] if "loss" in row]
            self.assertLess(losses[-1], losses[0])

    def test_resumes_to_the_bit(self):
        steps = ("--lr=0.02", "--steps=9")
        whole = self.run_it(self.classifier(), 2, *steps)
        folder = self.dir / "checkpoints"
        self.run_it(self.classifier(), 2, *steps, f"--checkpoint-dir={folder}", "--save-every=4")
        self.assertEqual(sorted(checkpoints(folder)), [4, 8, 9])
        rest = self.run_it(self.classifier("no_shard"), 2, *steps, f"--resume={folder}/step-00000004")
        bits = lambda rows: [(row["step"], row["loss"], row["grad_norm"]) for row in rows]
        self.assertEqual(bits(rest), bits(whole[4:]))
        # On one rank after two: with half the batch, the examples go on where they were.
        halves = self.run_it(self.classifier(), 1, "--lr=0", "--steps=6", "--shuffle=off",
                             f"--resume={folder}/step-00000004")
        self.assertEqual([row["step"] for row in halves], [4, 5])
        weights = tensors(folder / "step-00000004")
        reference = Reference({name: weights[name] for name in ("w1", "w2", "w3", "table")}, self.stored)
        for row in halves:
            first = 4 * 2 * BATCH + (row["step"] - 4) * BATCH
            expected = reference.evaluate([k % COUNT for k in range(first, first + BATCH)])[0]
            self.assertAlmostEqual(row["loss"], expected, delta=2e-5)
        # Other data is known as such.
        other = write(self.dir / "other.safetensors", examples(COUNT, seed=2))
        done = run("ftexec", self.classifier(), f"--data={other}", *steps, f"--resume={folder}/step-00000004")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (65, 1), done.stderr)
        self.assertIn("--data is not what the run had until here", done.stderr)

    def test_many_files_are_as_one(self):
        parts = self.dir / "parts"
        parts.mkdir()
        for i, (begin, end) in enumerate(((0, 37), (37, 38), (38, COUNT))):
            write(parts / f"{i}.safetensors", part(self.stored, begin, end))
        steps = ("--steps=10", "--lr=0.02")
        whole = self.run_it(self.classifier(), 2, *steps)
        self.assertEqual(self.run_it(self.classifier(), 2, *steps, data=parts), whole)
        weighted = self.run_it(self.classifier(), 2, *steps, data=f"{parts}/0.safetensors:3,{parts}/2.safetensors:1")
        self.assertNotEqual(weighted, whole)
        # Without --steps: one pass.
        self.assertEqual(len(self.run_it(self.classifier(), 2, data=parts)), -(-COUNT // (2 * BATCH)))

    def refused(self, words, stored=None, data=None, options=()):
        data = data or write(self.dir / "bad.safetensors", stored)
        done = run("ftexec", self.classifier(), f"--data={data}", "--steps=1", "--progress=off", *options)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (65, 1), done.stderr)
        for word in (words, str(data)):
            self.assertIn(word, done.stderr)

    def test_bad_data_is_refused(self):
        change = lambda **parts: {**self.stored, **parts}
        less = {name: tensor for name, tensor in self.stored.items() if name != "group"}
        with_value = lambda name, value: {name: (*self.stored[name][:2], [*self.stored[name][2][:-1], value])}
        self.refused("it has no tensor 'group'", less)
        self.refused("no input of the model takes tensor 'more'", change(more=("I32", (1,), [0])))
        self.refused("tensor 'labels' is I32 [100], but the model's input wants I64 [examples]",
                     change(labels=("I32", (COUNT,), self.stored["labels"][2])))
        self.refused("tensor 'group' has 99 examples", change(group=("I32", (99,), self.stored["group"][2][1:])))
        self.refused("tensor 'pixels' is F32 [100, 12]", change(pixels=("F32", (COUNT, 12), self.stored["pixels"][2])))
        self.refused("element 99, of example 99, has the value 5, outside of 0 ... 4", change(**with_value("group", 5)))
        self.refused("has the value -1, outside of 0 ... 4", change(**with_value("group", -1)))
        self.refused("has the value 4, outside of 0 ... 3", change(**with_value("labels", 4)))
        self.refused("has the value 2, outside of 0 ... 1", change(**with_value("keep", 2)))
        self.refused("cannot fill the model's input 'pixels'", data=self.text)
        cut = self.dir / "cut.safetensors"
        cut.write_bytes(self.file.read_bytes()[:-1])
        self.refused("", data=cut)
        self.refused("", data=cut, options=("--data-format=safetensors",))

    def test_labels_may_be_left_out(self):
        """Negative ones count in no loss."""
        values = list(self.stored["labels"][2])
        values[1:8] = [-100] * 7
        path = write(self.dir / "left.safetensors", {**self.stored, "labels": ("I64", (COUNT,), values)})
        plan = self.classifier("full_shard", *SGD)
        reference = Reference(self.initial(plan), self.stored)
        (row,) = self.run_it(plan, 1, "--shuffle=off", "--steps=1", data=path)
        self.assertAlmostEqual(row["loss"], reference.evaluate([0])[0], places=5)

    def test_targets_that_choose_nothing_are_numbers(self):
        """Of a loss of squares: negative ones count, and the name makes no difference."""
        draw, x, y = random.Random(4), "tensor<2x6xf32>", "tensor<2x6xi32>"
        values, found = {"x": [single(draw.gauss(0, 1)) for _ in range(48)], "y": [draw.randrange(-3, 4) for _ in range(48)]}, []
        for name in ("targets", "goal"):
            (self.dir / "model.mlir").write_text(f"""module {{
  ft.parameter @w : tensor<f32> = #ft.init<constant, 0.5>
  func.func @forward(%x: {x} {{ft.input = "x"}}, %y: {y} {{ft.input = "{name}"}}) -> tensor<f32> {{
    %w = ft.get @w : tensor<f32>
    %p = ft.mul %x, %w : {x}, tensor<f32>
    %t = ft.convert %y : {y} -> {x}
    %d = ft.sub %p, %t : {x}
    %s = ft.mul %d, %d : {x}
    %sum = ft.reduce "sum" %s over [0, 1] : {x} -> tensor<f32>
    %loss = ft.scale %sum, {1 / 12} : tensor<f32>
    return %loss : tensor<f32>
  }}
}}
""")
            self.check("ftc", "compile", self.dir / "model.mlir", "--strategy=full_shard", *SGD, "-o", self.dir / "plan.bin")
            data = write(self.dir / f"{name}.safetensors", {"x": ("F32", (8, 6), values["x"]), name: ("I32", (8, 6), values["y"])})
            rows = self.run_it(self.dir / "plan.bin", 2, "--shuffle=off", "--steps=2", f"--eval-data={data}", data=data)
            found.append([(row.get("loss"), row.get("grad_norm"), row.get("eval_loss"), row.get("counted")) for row in rows])
        self.assertEqual(*found)
        self.assertAlmostEqual(found[0][0][0], sum((0.5 * a - b) ** 2 for a, b in zip(values["x"][:24], values["y"][:24])) / 24, places=5)

    def test_labels_of_some_tokens(self):
        """As masked language models have them: every example is evaluated, by any number of ranks, and only labels count."""
        source, plan = self.dir / "model.mlir", self.dir / "plan.bin"
        text = self.check("ftc", "model", "gpt2", "--layers=1", "--hidden=16", "--heads=2", "--seq=16", "--batch=2").stdout
        ids = "tensor<2x16xi32>"
        source.write_text(text.replace(f"%tokens: {ids}, %targets: {ids}", f'%tokens: {ids} {{ft.input = "tokens"}}, '
                                       f'%targets: {ids} {{ft.input = "labels"}}'))
        self.check("ftc", "compile", source, "--strategy=full_shard", "-o", plan)
        draw, count = random.Random(3), 7
        labels = [draw.randrange(256) if draw.random() < 0.15 else -1 for _ in range(16 * count)]
        data = write(self.dir / "masked.safetensors", {"tokens": ("I32", (count, 16), [draw.randrange(256) for _ in range(16 * count)]),
                                                       "labels": ("I32", (count, 16), labels)})
        rows = [self.run_it(plan, world, f"--eval-data={data}", "--steps=0", data=data)[0] for world in (1, 2, 3)]
        for row in rows:
            self.assertEqual(row["eval_tokens"], sum(label >= 0 for label in labels))
            self.assertAlmostEqual(row["eval_loss"], rows[0]["eval_loss"], places=5)
        done = run("ftexec", plan, f"--data={self.text}")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (65, 1), done.stderr)
        self.assertIn("cannot fill the model's input 'labels' (i32 [16])", done.stderr)

    def test_tokens_with_positions(self):
        """Positions that a model asks for are 0, 1, 2 ...: as those that it counts itself."""
        source = self.dir / "model.mlir"
        good = self.check("ftc", "model", "gpt2", "--layers=1", "--hidden=16", "--heads=2", "--seq=16", "--batch=2").stdout
        ids = "tensor<2x16xi32>"
        named = good.replace(f"%tokens: {ids}, %targets: {ids}", f'%where: {ids} {{ft.input = "positions"}}, '
                             f'%targets: {ids} {{ft.input = "targets"}}, %tokens: {ids} {{ft.input = "tokens"}}')
        iota = '%positions = ft.iota {layer = "transformer.embed"} : tensor<16xi32>'
        self.assertIn(iota, named)
        asking = named.replace(iota, f'%one = ft.slice %where at [0, 0] {{layer = "transformer.embed"}} : {ids} -> tensor<1x16xi32>\n'
                               '%positions = ft.reshape %one {layer = "transformer.embed"} : tensor<1x16xi32> -> tensor<16xi32>')
        found = []
        for text in (good, asking):
            source.write_text(text)
            self.check("ftc", "compile", source, "--strategy=full_shard", "-o", self.dir / "plan.bin")
            found.append(self.run_it(self.dir / "plan.bin", 2, "--steps=4", f"--eval-data={self.text}", "--eval-steps=2", data=self.text))
        bits = lambda rows: [(row.get("loss"), row.get("grad_norm"), row.get("eval_loss")) for row in rows]
        self.assertEqual(bits(found[0]), bits(found[1]))
        # The same sequences as tensors.
        text = self.text.read_bytes()
        count = (len(text) - 1) // 16
        rows = lambda shift: [byte for k in range(count) for byte in text[16 * k + shift:16 * k + shift + 16]]
        data = write(self.dir / "sequences.safetensors", {"tokens": ("I32", (count, 16), rows(0)), "targets": ("I32", (count, 16), rows(1)),
                                                          "positions": ("I32", (count, 16), list(range(16)) * count)})
        tensor = self.run_it(self.dir / "plan.bin", 2, "--steps=4", f"--eval-data={data}", "--eval-steps=2", data=data)
        self.assertEqual(bits(tensor), bits(found[0]))
        # Nobody knows where documents begin in a text.
        source.write_text(asking.replace('"positions"', '"segments"'))
        self.check("ftc", "compile", source, "--strategy=full_shard", "-o", self.dir / "plan.bin")
        done = run("ftexec", self.dir / "plan.bin", f"--data={self.text}")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (65, 1), done.stderr)
        self.assertIn("cannot fill the model's input 'segments' (i32 [16])", done.stderr)


if __name__ == "__main__":
    unittest.main()
