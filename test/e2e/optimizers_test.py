"""Every row of the table of optimizers: no option changes a bit, its state is what the row says, and Lion moves by its rate."""

import struct
import unittest

import bf16_weights_test
import harness

BF16 = ("--mixed-precision=bf16", "--reduce-dtype=fp32")
ROWS = (("adamw",), ("adam",), ("sgd", "--momentum=0.9", "--nesterov"), ("lion",), ("muon",), ("adafactor",))
FP16 = ("--mixed-precision=fp16",)
# How the same numbers can be come by.
WAYS = (
    (3, "zero1", "--offload=optimizer"),
    (3, "zero1", "--offload=optimizer:step"),
    (3, "full_shard", "--wrap=none"),
    (3, "full_shard", "--offload=optimizer,parameters", "--persistence-threshold=1000"),
    (3, "full_shard", "--offload=optimizer:step,parameters", "--persistence-threshold=1000"),
    (3, "shard_grad_op", "--offload=optimizer:step", "--prefetch=post"),
)
# Parameters of rank 2, 1 and 0, none of which says whether it decays.
RANKS = """module {
  ft.parameter @table : tensor<256x8xf32> = #ft.init<normal, 1.0>
  ft.parameter @bias : tensor<256xf32> = #ft.init<normal, 1.0>
  ft.parameter @factor : tensor<f32> = #ft.init<constant, 2.0>
  func.func @forward(%tokens: tensor<2x16xi32> {ft.input = "tokens"}, %targets: tensor<2x16xi32> {ft.input = "targets"}) -> tensor<f32> {
    %t = ft.get @table : tensor<256x8xf32>
    %b = ft.get @bias : tensor<256xf32>
    %f = ft.get @factor : tensor<f32>
    %x = ft.embedding %tokens, %t : (tensor<2x16xi32>, tensor<256x8xf32>) -> tensor<2x16x8xf32>
    %l = ft.matmul %x, %t bias %b transpose_b : (tensor<2x16x8xf32>, tensor<256x8xf32>, tensor<256xf32>) -> tensor<2x16x256xf32>
    %m = ft.mul %l, %f : tensor<2x16x256xf32>, tensor<f32>
    %loss = ft.cross_entropy %m, %targets : (tensor<2x16x256xf32>, tensor<2x16xi32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
"""


def floats(tensor):
    _, _, data = tensor
    return struct.unpack(f"<{len(data) // 4}f", data)


class Optimizers(bf16_weights_test.Runs):
    def plan_of(self, row, *options):
        name, *others = row
        return self.compiled(f"--optimizer={name}", *others, *options)

    def test_no_option_changes_a_bit(self):
        """Each row by each way, in turns in fp32 and bf16; those with sums over whole tensors in fp16, too."""
        for i, row in enumerate(ROWS):
            plain = {}
            for k, (world, strategy, *others) in enumerate(WAYS):
                for precision in (((), BF16)[(i + k) % 2],) + (FP16,) * (row in (("muon",), ("adafactor",))):
                    with self.subTest(row=row, precision=precision, world=world, strategy=strategy, others=others):
                        plan = self.plan_of(row, f"--strategy={strategy}", *others, *precision)
                        run = self.run_of(plan, world, steps=3)
                        if (world, precision) not in plain:  # other worlds have other batches
                            plain[world, precision] = self.run_of(self.plan_of(row, "--strategy=ddp", *precision), world, steps=3)
                        self.assertEqual(run, plain[world, precision])

    def test_walked_and_over_micro_steps(self):
        for row in ROWS:
            plan = self.plan_of(row, "--strategy=full_shard", "--micro-steps=2", "--clip=0.25")
            other = self.plan_of(row, "--strategy=shard_grad_op", "--micro-steps=2", "--clip=0.25")
            run = self.run_of(plan, 2, steps=3)
            self.assertEqual(self.run_of(plan, 2, "--kernels=reference", steps=3), run, row)
            self.assertEqual(self.run_of(other, 2, steps=3), run, row)

    def test_state_is_that_of_the_row(self):
        for row, states in zip(ROWS, (2, 2, 1, 1)):
            rest = self.explain(self.plan_of(row, "--strategy=no_shard"), 1)["at_rest"]
            self.assertEqual(rest["optimizer_state"], states * rest["parameters"], row)
        # Matrices of layers have a momentum, all others what adamw has.
        muon, adamw = (self.explain(self.plan_of((name,), "--strategy=no_shard"), 1) for name in ("muon", "adamw"))
        rest = muon["at_rest"]
        hidden = 2 * (64 * 192 + 64 * 64 + 2 * 64 * 256)
        self.assertEqual(2 * rest["parameters"] - rest["optimizer_state"], 4 * hidden)
        # Adafactor has a number for each row and column, for each element of norms and biases, the same on all ranks.
        rows = 2 * sum(m + n for m, n in ((64, 192), (64, 64), (64, 256), (256, 64))) + (256 + 64) + (64 + 64)
        vectors = 2 * (4 * 64 + 192 + 64 + 256 + 64) + 2 * 64
        for strategy, ranks in (("no_shard", 1), ("full_shard", 3)):
            rest = self.explain(self.plan_of(("adafactor",), f"--strategy={strategy}"), ranks)["at_rest"]
            self.assertEqual(rest["optimizer_state"], 4 * (rows + vectors))
        # Their products, 20 m m n + 10 m m m operations for m <= n, are the optimizer's and not the model's.
        products = 2 * sum(20 * 64 * 64 * n + 10 * 64 ** 3 for n in (192, 64, 256, 256))
        self.assertEqual(muon["flops"]["model"], adamw["flops"]["model"])
        self.assertLess(abs(muon["flops"]["optimizer"] / products - 1), 0.05)

    def test_a_step_on_the_host_leaves_the_device_weights_alone(self):
        """Of what lies in memory between steps; gradients pass through, a few units' at a time."""
        for precision, strategy, slices in ((BF16, "no_shard", 1), (BF16, "zero1", 2), (FP16, "full_shard", 2), ((), "full_shard", 2)):
            with self.subTest(precision=precision, strategy=strategy):
                base = (f"--strategy={strategy}", "--wrap=size", "--min-num-params=20000", *precision)
                state, step = (self.explain(self.plan_of(("adamw",), f"--offload={what}", *base), 2)
                               for what in ("optimizer", "optimizer:step"))
                rest, host = step["at_rest"], step["host"]["bytes"]
                self.assertEqual(rest["total"] - rest["of_total_host"], rest["parameters"])
                self.assertEqual(rest["of_total_host"], rest["gradients"] + rest["optimizer_state"])
                self.assertEqual((host["gradients"], host["optimizer_state"]), (rest["gradients"], rest["optimizer_state"]))
                self.assertLess(step["bytes"]["gradients"], 0.75 * rest["gradients"])
                self.assertLess(step["arena_bytes"], state["arena_bytes"])
                masters = rest["of_optimizer_state_master"]
                self.assertEqual(rest["optimizer_state"], 3 * masters)
                # Down the gradients and a few scalars, up what is computed with.
                self.assertLess(step["traffic"]["d2h"]["bytes"] - rest["gradients"], 256)
                self.assertEqual(step["traffic"]["h2d"]["bytes"], masters if not precision else masters // 2)

    def test_lion_moves_by_its_rate(self):
        start, lr = self.dir / "start.safetensors", 2.0 ** -10
        plan = self.plan_of(("lion",), "--strategy=full_shard", "--weight-decay=0")
        self.train(plan, 1, "--lr=0", f"--save-weights={start}", steps=1)
        _, moved = self.run_of(plan, 2, f"--init={start}", f"--lr={lr}", steps=1)
        before, up, down = bf16_weights_test.tensors(start), 0, 0
        for name, tensor in moved.items():
            for old, new in zip(floats(before[name]), floats(tensor)):
                self.assertLessEqual(min(abs(new - old - s * lr) for s in (-1, 0, 1)), 2.0 ** -24, name)
                up, down = up + (new > old), down + (new < old)
        self.assertGreater(min(up, down), 1000)

    def test_what_has_no_two_axes_does_not_decay(self):
        (self.dir / "model.mlir").write_text(RANKS)
        for row in ROWS[:4]:  # muon wants matrices of layers, and adafactor scales by what a parameter is
            (_, none), (_, some) = (self.run_of(self.plan_of(row, "--strategy=full_shard", f"--weight-decay={decay}"), 2, "--lr=0.01", steps=1)
                                    for decay in (0, 0.5))
            self.assertEqual({name for name in none if none[name] != some[name]}, {"table"}, row)

    def test_a_checkpoint_goes_on_anywhere(self):
        for row, state in ((("lion",), "exp_avg"), (("muon",), "momentum_buffer"), (("adafactor",), "row_var")):
            with self.subTest(row=row):
                self.goes_on_anywhere(row, state)

    def goes_on_anywhere(self, row, state):
        whole = self.run_of(self.plan_of(row, "--strategy=full_shard"), 2, steps=4)
        folder = self.dir / f"checkpoints.{state}"
        keep = (f"--checkpoint-dir={folder}", "--save-every=2")
        self.run_of(self.plan_of(row, "--strategy=zero1"), 2, *keep, steps=2)
        shown = self.check("ftckpt", "show", folder).stdout
        self.assertIn(state, shown)
        self.assertEqual("exp_avg_sq" in shown, row == ("muon",), shown)
        plan, saved, rows = self.plan_of(row, "--strategy=no_shard", "--offload=optimizer"), self.dir / f"{state}.w", self.dir / f"{state}.r"
        self.check("ftrun", "--nproc-per-node=2", "--standalone", harness.BIN / "ftexec", plan, f"--data={self.text}", "--steps=4",
                   "--shuffle=off", "--threads=1", "--progress=off", *keep, "--resume=auto", f"--save-weights={saved}", f"--metrics={rows}")
        self.assertEqual([(row["loss"], row["grad_norm"]) for row in harness.metrics(rows)], whole[0][2:])
        self.assertEqual(bf16_weights_test.tensors(saved), whole[1])

    def test_settings(self):
        self.check("ftc", "model", "gpt2", "-o", self.dir / "model.mlir")
        compile_line = ("compile", self.dir / "model.mlir", "--strategy=ddp", "-o", self.dir / "p.bin")
        done = harness.run("ftc", *compile_line, "--optimizer=lion", "--print-config")
        self.assertIn("betas: 0.9,0.99", done.stdout)
        done = harness.run("ftc", *compile_line, "--optimizer=lion", "--eps=1e-6")
        self.assertIn("--eps has no effect: optimizer is lion", done.stderr)
        self.assertIn("momentum: 0.95 ", harness.run("ftc", *compile_line, "--optimizer=muon", "--print-config").stdout)
        done = harness.run("ftc", *compile_line, "--adamw-params=*.mlp.*")
        self.assertIn("--adamw-params has no effect: optimizer is adamw", done.stderr)
        (self.dir / "trainer.yaml").write_text("strategy: ddp\noptim: adafactor\n")
        done = harness.run("ftc", "compile", self.dir / "model.mlir", f"--config={self.dir}/trainer.yaml", "-o", self.dir / "p.bin")
        self.assertIn("Trainer has it: lr=0.0003 (there 5e-05), lr_schedule=constant (there linear), scale_parameter=true (there false), "
                      "eps=1.1920928955078125e-07 (there 1e-30, added to squares)\n",
                      done.stderr)
        for options, message in ((("--optimizer=tiger",), "tiger"), (("--eps=0",), "eps"), (("--optimizer=muon", "--adamw-params=x"), "'x'"),
                                 (("--optimizer=adafactor", "--clip-threshold=0.5"), "no number of at least 1"),
                                 (("--optimizer=adafactor", "--eps=1e-30"), "eps is 1e-30; adafactor wants 1.1e-19"),
                                 (("--eps=1e-50",), "eps is 1e-50; adamw wants 1.2e-38"), (("--eps=1e300",), "which f32 does not hold"),
                                 (("--optimizer=muon", "--adamw-params=*"), "hidden layers")):
            done = harness.run("ftc", *compile_line, *options)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(message, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
