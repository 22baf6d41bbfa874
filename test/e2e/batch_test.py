"""ftc compile --batch=N: a model that is written for one batch is compiled for another, with the plan of a model that was written for it."""

import re
import unittest

from harness import EndToEnd, run

# With a router, the mean of a product of sums over the batch is multiplied by a number of its own, which is rounded.
ROUTED = {"mixtral", "qwen3_moe"}


def families():
    return re.findall(r"^(\w+):", run("ftc", "model", "--list").stdout, re.M)


class Batch(EndToEnd):
    def plan(self, model, *flags):
        path = self.dir / "plan.bin"
        self.check("ftc", "compile", model, "--strategy=full_shard", "--code=none", *flags, "-o", path)
        return path.read_bytes()

    def make(self, family, batch, *flags):
        path = self.dir / f"{family}.mlir"
        self.check("ftc", "model", family, "--preset=debug", f"--batch={batch}", *flags, "-o", path)
        return path

    def test_families(self):
        """Every family, to twice the batch and to half of it: byte for byte the plan of the model with that batch."""
        for family in families():
            for old, new in ((2, 4), (4, 2), (1, 2)) if family not in ROUTED else ((2, 4), (4, 2)):
                with self.subTest(family=family, old=old, new=new):
                    written = self.plan(self.make(family, new))
                    self.assertEqual(self.plan(self.make(family, old), f"--batch={new}"), written)

    def test_other_batches(self):
        """A batch that is no multiple; packed documents; labels that the model shifts itself."""
        for family, flags in (("gpt2", []), ("llama", ["--packed=on"]), ("gemma2", [])):
            with self.subTest(family=family):
                written = self.plan(self.make(family, 3, *flags))
                self.assertEqual(self.plan(self.make(family, 5, *flags), "--batch=3"), written)

    def test_train_yaml(self):
        """DeepSpeed's key says it, too; with adapters and micro-steps."""
        config = self.dir / "train.yaml"
        config.write_text("train_micro_batch_size_per_gpu: 6\nmicro_steps: 2\n")
        adapters = "--lora=r:4,alpha:8,targets:q_proj"
        written = self.plan(self.make("llama", 6), "--micro-steps=2", adapters)
        self.assertEqual(self.plan(self.make("llama", 2), f"--config={config}", adapters), written)

    def forward(self, body, result="%loss"):
        path = self.dir / "own.mlir"
        path.write_text('ft.parameter @w : tensor<8x8xf32> = #ft.init<normal, 0.02>\n'
                        'func.func @forward(%x: tensor<4x8xf32> {ft.input = "x"}) -> tensor<f32> {\n'
                        f'  %w = ft.get @w : tensor<8x8xf32>\n{body}\n  return {result} : tensor<f32>\n}}\n')
        return path

    PRODUCT = '  %y = ft.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>\n'

    def loss(self, model, batch):
        """The graph with another batch."""
        return self.check("ftc", "compile", model, "--strategy=no_shard", f"--batch={batch}", "--dump=parse").stdout

    def test_sums(self):
        """A sum over the batch that is divided by a number stays a mean; one without is multiplied."""
        mean = self.forward(self.PRODUCT + '  %s = ft.reduce "sum" %y over [0, 1] : tensor<4x8xf32> -> tensor<f32>\n'
                            '  %loss = ft.scale %s, 0.03125 : tensor<f32>')
        self.assertIn("ft.scale %", dumped := self.loss(mean, 8))
        self.assertIn("0.015625", dumped)
        self.assertIn("tensor<8x8xf32>", dumped)
        plain = self.forward(self.PRODUCT + '  %loss = ft.reduce "sum" %y over [0, 1] : tensor<4x8xf32> -> tensor<f32>')
        self.assertIn("0.5", self.loss(plain, 8))
        before = self.forward(self.PRODUCT + '  %t = ft.scale %y, 0.03125 : tensor<4x8xf32>\n'
                              '  %loss = ft.reduce "sum" %t over [0, 1] : tensor<4x8xf32> -> tensor<f32>')
        self.assertIn("2.0", self.loss(before, 2))
        half = self.forward(self.PRODUCT + '  %s = ft.reduce "sum" %y over [0, 1] : tensor<4x8xf32> -> tensor<f32>\n'
                            '  %loss = ft.scale %s, 0.5 : tensor<f32>')
        self.assertRegex(self.loss(half, 1), r"ft.scale %\d+, 2.0 ")
        self.assertRegex(self.loss(half, 6), r"ft.scale %\d+, 0.333333")

    def test_sums_of_other_ops(self):
        """Products of the batch with itself, and elements added to a few rows, are sums over it, too."""
        square = self.forward(self.PRODUCT + '  %g = ft.matmul %y, %y transpose_a : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>\n'
                              '  %loss = ft.reduce "sum" %g over [0, 1] : tensor<8x8xf32> -> tensor<f32>')
        self.assertRegex(self.loss(square, 8), r"ft.scale %\d+, 0.5 ")
        added = self.forward(self.PRODUCT + '  %r = ft.reduce "sum" %y over [1] : tensor<4x8xf32> -> tensor<4xf32>\n'
                             '  %i = ft.iota : tensor<4xi32>\n'
                             '  %c = ft.scatter_add_elements %r, %i : tensor<4xf32>, tensor<4xi32> -> tensor<3xf32>\n'
                             '  %loss = ft.reduce "sum" %c over [0] : tensor<3xf32> -> tensor<f32>')
        self.assertRegex(self.loss(added, 8), r"ft.scale %\d+, 0.5 ")

    def test_what_forbids_it(self):
        """One line that names the op: a part of the batch, a parameter of its size, a sum that goes through an exponential."""
        reduced = '  %loss = ft.reduce "sum" %{} over [0, 1] : tensor<{}xf32> -> tensor<f32>'
        part = ('  %p = ft.slice %y at [1, 0] : tensor<4x8xf32> -> tensor<2x8xf32>\n' + reduced.format("p", "2x8"))
        uneven = ('  %s = ft.reduce "sum" %y over [0, 1] : tensor<4x8xf32> -> tensor<f32>\n  %loss = ft.exp %s : tensor<f32>')
        swapped = ('  %t = ft.transpose %y [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>\n'
                   '  %z = ft.matmul %w, %t : (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>\n'
                   '  %b = ft.reshape %z : tensor<8x4xf32> -> tensor<2x16xf32>\n' + reduced.format("b", "2x16"))
        cut = ('  %p = ft.slice %x at [0, 0] : tensor<4x8xf32> -> tensor<2x8xf32>\n'
               '  %q = ft.matmul %p, %w : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>\n' + reduced.format("q", "2x8"))
        compared = ('  %s = ft.reduce "sum" %y over [0, 1] : tensor<4x8xf32> -> tensor<f32>\n  %f = ft.fill 12.0 : tensor<f32>\n'
                    '  %m = ft.lt %s, %f : tensor<f32>, tensor<f32>\n  %loss = ft.select %m, %s, %f : tensor<i1>, tensor<f32>, tensor<f32>')
        rows = '  %q = ft.embedding %i, %y : (tensor<2xi32>, tensor<4x8xf32>) -> tensor<2x8xf32>\n' + reduced.format("q", "2x8")
        flipped = ('  %n = ft.iota : tensor<4xi32>\n  %m = ft.neg %n : tensor<4xi32>\n  %i = ft.shift %m, 3.0 : tensor<4xi32>\n'
                   '  %t = ft.embedding %i, %y : (tensor<4xi32>, tensor<4x8xf32>) -> tensor<4x8xf32>\n'
                   '  %q = ft.mul %t, %y : tensor<4x8xf32>, tensor<4x8xf32>\n' + reduced.format("q", "4x8"))
        chosen = '  %i = ft.iota : tensor<2xi32>\n' + rows
        hardest = ('  %r = ft.reduce "sum" %y over [1] : tensor<4x8xf32> -> tensor<4xf32>\n'
                   '  %i = ft.argsort %r descending : tensor<4xf32> -> tensor<2xi32>\n' + rows)
        corrected = ('  %s = ft.reduce "sum" %y over [0, 1] : tensor<4x8xf32> -> tensor<f32>\n  %loss = ft.scale %s, 0.03225806451612903 : tensor<f32>')
        pairs = '  %p = ft.dot %y, %y transpose_b : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x4xf32>\n'
        others = pairs + '  %s = ft.reduce "sum" %p over [0, 1] : tensor<4x4xf32> -> tensor<f32>\n  %loss = ft.scale %s, 0.08333333333333333 : tensor<f32>'
        squares = pairs + ('  %q = ft.softmax %p : tensor<4x4xf32>\n  %r = ft.square %q : tensor<4x4xf32>\n' + reduced.format("r", "4x4"))
        shares = ('  %t = ft.transpose %y [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>\n  %p = ft.softmax %t : tensor<8x4xf32>\n'
                  '  %m = ft.mul %p, %t : tensor<8x4xf32>, tensor<8x4xf32>\n' + reduced.format("m", "8x4").replace("%loss", "%s") + '\n  %loss = ft.scale %s, 0.03125 : tensor<f32>')
        filled = ('  %n = ft.iota : tensor<4xi32>\n  %f = ft.fill 3.0 : tensor<f32>\n  %c = ft.convert %f : tensor<f32> -> tensor<i32>\n'
                  '  %b = ft.broadcast %c : tensor<i32> -> tensor<4xi32>\n  %i = ft.sub %b, %n : tensor<4xi32>, tensor<4xi32>\n'
                  '  %e = ft.embedding %i, %y : (tensor<4xi32>, tensor<4x8xf32>) -> tensor<4x8xf32>\n'
                  '  %q = ft.mul %e, %y : tensor<4x8xf32>, tensor<4x8xf32>\n' + reduced.format("q", "4x8"))
        half = ('  %n = ft.iota : tensor<4xi32>\n  %f = ft.fill 2.0 : tensor<f32>\n  %c = ft.convert %f : tensor<f32> -> tensor<i32>\n'
                '  %b = ft.lt %n, %c : tensor<4xi32>, tensor<i32>\n  %q = ft.convert %b : tensor<4xi1> -> tensor<4xf32>\n'
                '  %r = ft.reduce "sum" %y over [1] : tensor<4x8xf32> -> tensor<4xf32>\n  %m = ft.mul %q, %r : tensor<4xf32>, tensor<4xf32>\n'
                '  %loss = ft.reduce "sum" %m over [0] : tensor<4xf32> -> tensor<f32>')
        unbiased = ('  %s = ft.reduce "sum" %y over [0, 1] : tensor<4x8xf32> -> tensor<f32>\n  %loss = ft.scale %s, 0.041666666666666664 : tensor<f32>')
        weighed = shares.replace("ft.softmax %t : tensor<8x4xf32>", "ft.div %t, %e : tensor<8x4xf32>, tensor<8x4xf32>").replace("  %p =", '  %n = ft.reduce "sum" %t over [1] : tensor<8x4xf32> -> tensor<8xf32>\n  %k = ft.reshape %n : tensor<8xf32> -> tensor<8x1xf32>\n  %e = ft.broadcast %k : tensor<8x1xf32> -> tensor<8x4xf32>\n  %p =')
        for body, op in ((shares, "ft.scale"), (weighed, "ft.scale"), (others, "ft.scale"), (squares, "ft.square"), (filled, "ft.sub"), (half, "ft.lt"), (unbiased, "ft.scale"), (flipped, "ft.shift"), (chosen, "ft.embedding"), (hardest, "ft.argsort"), (corrected, "ft.scale"), (part, "ft.slice"), (cut, "ft.slice"), (compared, "ft.lt"), (uneven, "ft.exp"), (swapped, "ft.reshape")):
            with self.subTest(op=op):
                model = self.forward(self.PRODUCT + body)
                self.check("ftc", "compile", model, "--strategy=no_shard", "--batch=4", "-o", self.dir / "p.bin")
                done = run("ftc", "compile", model, "--strategy=no_shard", "--batch=8", "-o", self.dir / "p.bin")
                lines = done.stderr.splitlines()
                self.assertEqual((done.returncode, len(lines)), (65, 1), done.stderr)
                for word in ("own.mlir:", op, "keeps the batch from changing"):
                    self.assertIn(word, lines[0])

    def test_what_divides_by_other_extents(self):
        """One less than the columns, all of them or those behind the first, is no number of rows."""
        for columns, rows in ((7, 4), (7, 8), (3, 4)):
            part = (f'  %p = ft.slice %y at [0, {8 - columns}] : tensor<4x8xf32> -> tensor<4x{columns}xf32>\n'
                    f'  %s = ft.reduce "sum" %p over [0, 1] : tensor<4x{columns}xf32> -> tensor<f32>\n'
                    f'  %t = ft.scale %s, {1 / columns!r} : tensor<f32>\n  %loss = ft.scale %t, 0.25 : tensor<f32>')
            self.assertIn("ft.scale", self.loss(self.forward(self.PRODUCT + part), rows * 2))
        shares = ('  %n = ft.reduce "sum" %y over [0] : tensor<4x8xf32> -> tensor<8xf32>\n  %p = ft.div %y, %n : tensor<4x8xf32>, tensor<8xf32>\n'
                  '  %m = ft.mul %p, %y : tensor<4x8xf32>, tensor<4x8xf32>\n  %s = ft.reduce "sum" %m over [0, 1] : tensor<4x8xf32> -> tensor<f32>\n  %loss = ft.scale %s, 0.125 : tensor<f32>')
        self.assertIn(", 0.125 :", self.loss(self.forward(self.PRODUCT + shares), 8))  # a mean over columns, or a coefficient
        masked = ('  %s = ft.reduce "sum" %y over [0, 1] : tensor<4x8xf32> -> tensor<f32>\n  %loss = ft.scale %s, 0.03571428571428571 : tensor<f32>')
        self.assertIn("0.017857142857142856", self.loss(self.forward(self.PRODUCT + masked), 8))

    def test_a_batch_of_one_between_other_extents(self):
        """A reshape that joins it may join it with either; in front there is no choice."""
        text = """module attributes {ft.vocab_size = 256 : i64} {
  ft.parameter @table : tensor<256x4xf32> = #ft.init<normal, 1.0>
  func.func @forward(%tokens: tensor<1x2xi32>, %targets: tensor<1x2xi32>) -> tensor<f32> {
    %t = ft.get @table : tensor<256x4xf32>
    %x = ft.embedding %tokens, %t : (tensor<1x2xi32>, tensor<256x4xf32>) -> tensor<1x2x4xf32>
BODY
    %l = ft.matmul %y, %t transpose_b : (tensor<1x2x4xf32>, tensor<256x4xf32>) -> tensor<1x2x256xf32>
    %loss = ft.cross_entropy %l, %targets : (tensor<1x2x256xf32>, tensor<1x2xi32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
"""
        between = """    %p = ft.transpose %x [2, 0, 1] : tensor<1x2x4xf32> -> tensor<4x1x2xf32>
    %r = ft.reshape %p : tensor<4x1x2xf32> -> tensor<4x2xf32>
    %s = ft.softmax %r : tensor<4x2xf32>
    %b = ft.reshape %s : tensor<4x2xf32> -> tensor<4x1x2xf32>
    %y = ft.transpose %b [1, 2, 0] : tensor<4x1x2xf32> -> tensor<1x2x4xf32>"""
        front = """    %r = ft.reshape %x : tensor<1x2x4xf32> -> tensor<2x4xf32>
    %s = ft.softmax %r : tensor<2x4xf32>
    %b = ft.reshape %s : tensor<2x4xf32> -> tensor<1x2x1x4xf32>
    %y = ft.reshape %b : tensor<1x2x1x4xf32> -> tensor<1x2x4xf32>"""
        model = self.dir / "one.mlir"
        model.write_text(text.replace("BODY", front))
        self.assertIn("tensor<6x4xf32>", self.loss(model, 3))
        model.write_text(text.replace("BODY", between))
        self.loss(model, 1)
        done = run("ftc", "compile", model, "--strategy=no_shard", "--batch=3", "-o", self.dir / "p.bin")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (65, 1), done.stderr)
        self.assertIn("'ft.reshape' op keeps the batch from changing: dimension 1 of 4x1x2 would change with it", done.stderr)


if __name__ == "__main__":
    unittest.main()
