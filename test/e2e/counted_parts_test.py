"""A loss counts what its cross entropy reads, whatever the input is called and however that is cut or turned."""

import random
import unittest

from harness import BIN, EndToEnd, metrics, run
from signatures_test import write

BATCH, LENGTH, CLASSES, COUNT = 2, 5, 31, 12
IDS, LOGITS = f"tensor<{BATCH}x{LENGTH}xi32>", f"tensor<{BATCH}x{LENGTH}x{CLASSES}xf32>"
FLAT = f"tensor<{BATCH * LENGTH}xi32>"
MODEL = """module attributes {ft.vocab_size = 31 : i64} {
  ft.parameter @table : tensor<31x8xf32> = #ft.init<normal, 1.0> {layer = "embed"}
  ft.parameter @b : tensor<31xf32> = #ft.init<normal, 1.0>
  func.func @forward(%tokens: IDS {ft.input = "tokens"}, %y: IDS {ft.input = "NAME"}) -> tensor<f32> {
    %t = ft.get @table : tensor<31x8xf32>
    %x = ft.embedding %tokens, %t : (IDS, tensor<31x8xf32>) -> tensor<2x5x8xf32>
    %b = ft.get @b : tensor<31xf32>
    %l = ft.matmul %x, %t bias %b transpose_b : (tensor<2x5x8xf32>, tensor<31x8xf32>, tensor<31xf32>) -> LOGITS
LOSS
    return %loss : tensor<f32>
  }
}
"""
PLAIN = "    %loss = ft.cross_entropy %l, %y : (LOGITS, IDS) -> tensor<f32>"
# The first two of a sequence are its prompt.
SLICED = """    %r = ft.slice %l at [0, 2, 0] : LOGITS -> tensor<2x3x31xf32>
    %u = ft.slice %y at [0, 2] : IDS -> tensor<2x3xi32>
    %loss = ft.cross_entropy %r, %u : (tensor<2x3x31xf32>, tensor<2x3xi32>) -> tensor<f32>"""
FLATTENED = f"""    %r = ft.reshape %l : LOGITS -> tensor<10x31xf32>
    %u = ft.reshape %y : IDS -> {FLAT}
    %loss = ft.cross_entropy %r, %u : (tensor<10x31xf32>, {FLAT}) -> tensor<f32>"""
RESHAPED = PLAIN.replace("%loss", "%e") + """
    %q = ft.reshape %e : tensor<f32> -> tensor<1xf32>
    %loss = ft.reshape %q : tensor<1xf32> -> tensor<f32>"""
# The model itself leaves out what is below 3.
COMPUTED = """    %f = ft.fill 3.0 : tensor<f32>
    %three = ft.convert %f : tensor<f32> -> tensor<i32>
    %g = ft.fill -100.0 : tensor<f32>
    %none = ft.convert %g : tensor<f32> -> tensor<i32>
    %out = ft.lt %y, %three : IDS, tensor<i32>
    %u = ft.select %out, %none, %y : tensor<2x5xi1>, tensor<i32>, IDS
    %loss = ft.cross_entropy %l, %u : (LOGITS, IDS) -> tensor<f32>"""
# Rows and targets are of one input, as of a decoder that takes labels.
SHIFTED = f"    %i = ft.shift %y, 1.0 : {IDS}"
CHOSEN = f"""    %f = ft.fill 0.0 : tensor<f32>
    %pad = ft.convert %f : tensor<f32> -> tensor<i32>
    %out = ft.lt %y, %pad : {IDS}, tensor<i32>
    %i = ft.select %out, %pad, %y : tensor<2x5xi1>, tensor<i32>, {IDS}"""
# A loss with another term.
SUMMED = SLICED.replace("%loss", "%e") + """
    %n = ft.reduce "sum" %b over [0] : tensor<31xf32> -> tensor<f32>
    %z = ft.scale %n, 0.0 : tensor<f32>
    %loss = ft.add %e, %z : tensor<f32>"""


class CountedParts(EndToEnd):
    def setUp(self):
        super().setUp()
        draw = random.Random(5)
        self.labels = [draw.randrange(CLASSES) if draw.random() < 0.6 else -1 for _ in range(COUNT * LENGTH)]
        self.labels[2 * LENGTH:4 * LENGTH] = [-1] * (2 * LENGTH)  # a micro-step in which none counts
        self.ids = [draw.randrange(CLASSES) for _ in range(COUNT * LENGTH)]

    def data(self, name):
        return write(self.dir / f"{name}.safetensors", {"tokens": ("I32", (COUNT, LENGTH), self.ids), name: ("I32", (COUNT, LENGTH), self.labels)})

    def compiled(self, loss, name, *options):
        source, plan = self.dir / "model.mlir", self.dir / "plan.bin"
        text = MODEL.replace("LOSS", loss).replace("NAME", name)
        source.write_text(text.replace("IDS", IDS).replace("LOGITS", LOGITS))
        self.check("ftc", "compile", source, "--strategy=full_shard", *options, "-o", plan)
        return plan

    def numbers(self, loss, name, world=1):
        plan = self.compiled(loss, name, "--micro-steps=2")
        data, path = self.data(name), self.dir / "metrics.jsonl"
        path.unlink(missing_ok=True)
        self.check("ftrun", "--standalone", f"--nproc-per-node={world}", BIN / "ftexec", plan, f"--data={data}", "--shuffle=off", "--steps=3", f"--metrics={path}",
                   f"--eval-data={data}", "--eval-every=3", f"--save-weights={self.dir / 'w.safetensors'}")
        rows = [{key: row.get(key) for key in ("loss", "grad_norm", "counted", "eval_loss", "eval_tokens")} for row in metrics(path)]
        return rows, (self.dir / "w.safetensors").read_bytes()

    def test_the_name_makes_no_difference(self):
        for loss in (PLAIN, SLICED, FLATTENED, RESHAPED):
            for world in (1, 2):
                with self.subTest(loss=loss, world=world):
                    self.assertEqual(self.numbers(loss, "targets", world), self.numbers(loss, "y", world))

    def test_a_part_counts_alone(self):
        behind = sum(label >= 0 for k, label in enumerate(self.labels) if k % LENGTH >= 2)
        for loss in (SLICED, SUMMED):
            rows, _ = self.numbers(loss, "targets")
            self.assertEqual(rows[-1]["eval_tokens"], behind)
            self.assertEqual(sum(row["counted"] or 0 for row in rows if row["loss"] is not None), behind)
        self.assertEqual(self.numbers(SLICED, "targets")[0], self.numbers(SUMMED, "targets")[0])

    def test_a_shape_makes_no_difference(self):
        plain = self.numbers(PLAIN, "targets")
        for loss in (FLATTENED, RESHAPED):
            self.assertEqual(self.numbers(loss, "targets"), plain)

    def test_computed_targets(self):
        computed = self.numbers(COMPUTED, "targets")
        self.labels = [label if label >= 3 else -1 for label in self.labels]
        self.assertEqual(computed, self.numbers(PLAIN, "targets"))

    def test_negative_targets_that_choose_a_row(self):
        """Let through only where something stands in for them."""
        looked_up = MODEL.replace("tensor<31x8xf32> = #ft", "tensor<32x8xf32> = #ft", 1).replace("tensor<31x8xf32>) -> tensor<2x5x8xf32>", "tensor<32x8xf32>) -> tensor<2x5x8xf32>")
        looked_up = looked_up.replace("%t = ft.get @table : tensor<31x8xf32>", "%t = ft.get @table : tensor<32x8xf32>").replace("embedding %tokens", "embedding %i")
        for rows, status in ((SHIFTED, 65), (CHOSEN, 0)):
            text = looked_up.replace("    %x = ft.embedding", rows + "\n    %p = ft.slice %t at [0, 0] : tensor<32x8xf32> -> tensor<31x8xf32>\n    %x = ft.embedding")
            text = text.replace("%x, %t bias", "%x, %p bias").replace("LOSS", PLAIN).replace("NAME", "y").replace("IDS", IDS).replace("LOGITS", LOGITS)
            (self.dir / "model.mlir").write_text(text)
            self.check("ftc", "compile", self.dir / "model.mlir", "--strategy=full_shard", "-o", self.dir / "plan.bin")
            done = run("ftexec", self.dir / "plan.bin", f"--data={self.data('y')}", "--steps=1")
            self.assertEqual(done.returncode, status, done.stderr)
            if status:
                self.assertIn("has the value -1, outside of", done.stderr)

    def test_evaluation_alone(self):
        """Every example is evaluated, with its accuracy."""
        _, weights = self.numbers(PLAIN, "targets")
        start = self.dir / "start.safetensors"
        start.write_bytes(weights)
        found = []
        for loss in (PLAIN, FLATTENED, RESHAPED):
            plan, path = self.compiled(loss, "targets", "--evaluate"), self.dir / "evaluated.jsonl"
            path.unlink(missing_ok=True)
            self.check("ftexec", plan, "--evaluate", f"--data={self.data('targets')}", f"--init={start}", f"--metrics={path}")
            (row,) = metrics(path)
            found.append({key: row.get(key) for key in ("eval_loss", "eval_tokens", "eval_accuracy")})
        self.assertEqual(found[1:], found[:1] * 2)
        self.assertEqual(found[0]["eval_tokens"], sum(label >= 0 for label in self.labels))
        self.assertIsNotNone(found[0]["eval_accuracy"])


if __name__ == "__main__":
    unittest.main()
