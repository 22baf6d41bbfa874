"""Mixed precision and dropout: bf16 learns as fp32 does, and no strategy changes a bit of either."""

import unittest

import harness

BF16 = ("--mixed-precision=bf16",)
BF16_FP32 = ("--param-dtype=bf16", "--reduce-dtype=fp32")
# Overflows at first, and again when the scale has grown.
FP16 = ("--mixed-precision=fp16", "--initial-scale-power=20", "--loss-scale-window=3")

# A parameter that scales a vector element by element: its gradient is made by a kernel of activations.
SCALED = """
module attributes {ft.batch = 2 : i64, ft.seq_len = 8 : i64, ft.vocab_size = 256 : i64} {
  ft.parameter @"embed.weight" : tensor<256x16xf32> = #ft.init<normal, 0.5> {layer = "embed"}
  ft.parameter @"block.scale" : tensor<16xf32> = #ft.init<constant, 1.0> {layer = "block", no_decay}
  ft.parameter @"block.gain" : tensor<16xf32> = #ft.init<constant, 1.0> {layer = "block", no_decay}
  func.func @forward(%tokens: tensor<2x8xi32>, %targets: tensor<2x8xi32>) -> tensor<f32> {
    %e = ft.get @"embed.weight" {layer = "embed"} : tensor<256x16xf32>
    %x = ft.embedding %tokens, %e {layer = "embed"} : (tensor<2x8xi32>, tensor<256x16xf32>) -> tensor<2x8x16xf32>
    %scale = ft.get @"block.scale" {layer = "block"} : tensor<16xf32>
    %gain = ft.get @"block.gain" {layer = "block"} : tensor<16xf32>
    %both = ft.mul %scale, %gain {layer = "block"} : tensor<16xf32>, tensor<16xf32>
    %y = ft.mul %x, %both {layer = "block"} : tensor<2x8x16xf32>, tensor<16xf32>
    %logits = ft.matmul %y, %e transpose_b {layer = "head"} : (tensor<2x8x16xf32>, tensor<256x16xf32>) -> tensor<2x8x256xf32>
    %loss = ft.cross_entropy %logits, %targets {layer = "head"} : (tensor<2x8x256xf32>, tensor<2x8xi32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
"""


class Precision(harness.EndToEnd):
    def compiled(self, model, strategy, *options, model_options=()):
        """Path of a plan; `options` are those of ftc compile."""
        name = "-".join((model, strategy, *model_options, *options)).replace("/", "_").replace("=", "_")
        source, plan = self.dir / f"{name}.mlir", self.dir / f"{name}.bin"
        if model == "scaled":
            source.write_text(SCALED)
        else:
            self.check("ftc", "model", model, *model_options, "-o", source)
        self.check("ftc", "compile", source, f"--strategy={strategy}", *options, "-o", plan)
        return plan

    def numbers(self, plan, world, lr=1e-3, **kwargs):
        rows = self.train(plan, world, "--shuffle=off", f"--lr={lr}", **kwargs)
        return [(row["loss"], row["grad_norm"], row.get("loss_scale"), row.get("skipped", False)) for row in rows]

    def assert_same_bits(self, model, world, strategies, *options, model_options=(), steps=6):
        runs = {strategy: self.numbers(self.compiled(model, strategy, *options, model_options=model_options), world, steps=steps)
                for strategy in strategies}
        first = runs[strategies[0]]
        for strategy, run in runs.items():
            self.assertEqual(run, first, f"{model}, {options}: {strategy} differs from {strategies[0]}")
        return first

    def losses(self, lr, *options):
        return [row[0] for row in self.numbers(self.compiled("gpt2", "full_shard", *options), 1, lr=lr, steps=200)]

    def test_bf16_follows_fp32(self):
        fp32 = self.losses(3e-4)
        for options in (BF16, BF16_FP32):
            bf16 = self.losses(3e-4, *options)
            for step, (ours, expected) in enumerate(zip(bf16, fp32)):
                self.assertLess(abs(ours / expected - 1), 0.01, f"step {step}, {options}: {ours} against {expected}")
            self.assertNotEqual(bf16, fp32)
            self.assertLess(bf16[-1], 0.6 * bf16[0])  # and it has learned

    def test_bf16_follows_fp32_through_spikes(self):
        # Without warm-up this learning rate makes spikes, in fp32 too, whose height any rounding changes; learning goes on.
        fp32 = self.losses(1e-3)
        for options in (BF16, BF16_FP32):
            bf16 = self.losses(1e-3, *options)
            self.assertLess(abs(sum(bf16[-20:]) / sum(fp32[-20:]) - 1), 0.01, options)

    def test_strategies_give_the_same_bits(self):
        everywhere = ("no_shard", "zero1", "shard_grad_op", "full_shard")
        self.assert_same_bits("gpt2", 2, everywhere, *BF16)
        self.assert_same_bits("llama", 3, everywhere, *BF16_FP32)
        self.assert_same_bits("free_transformer", 2, everywhere, *BF16)

    def test_strategies_skip_the_same_steps(self):
        rows = self.assert_same_bits("gpt2", 2, ("no_shard", "zero1", "shard_grad_op", "full_shard"), *FP16, steps=12)
        self.assertGreater(sum(row[3] for row in rows), 2)
        self.assertGreater(sum(not row[3] for row in rows), 2)

    def test_gradients_of_activation_kernels_are_rounded(self):
        fp32 = self.numbers(self.compiled("scaled", "full_shard"), 2, steps=6)
        rows = self.assert_same_bits("scaled", 2, ("no_shard", "shard_grad_op", "full_shard"), *BF16_FP32)
        for ours, expected in zip(rows, fp32):
            self.assertLess(abs(ours[0] / expected[0] - 1), 0.01)

    def test_dropout_draws_the_same_numbers_everywhere(self):
        everywhere = ("no_shard", "shard_grad_op", "full_shard")
        for model in ("gpt2", "llama"):
            with_dropout = self.assert_same_bits(model, 2, everywhere, model_options=("--dropout=0.1",))
            self.assertNotEqual(with_dropout, self.numbers(self.compiled(model, "full_shard"), 2, steps=6))
        self.assert_same_bits("gpt2", 2, everywhere, *BF16, model_options=("--dropout=0.1",))

    def test_a_rate_that_is_none(self):
        for rate in ("1", "-0.5", "nan"):
            done = harness.run("ftc", "model", "gpt2", f"--dropout={rate}")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, rf"^ftc: .*--dropout={rate}.*")
            self.assertRegex(done.stderr, "is out of range; expected a number, 0 or more and below 1\n$")


if __name__ == "__main__":
    unittest.main()
