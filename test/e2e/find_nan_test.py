"""--find-nan: which rank, layer and op a step that is not finite began with; and that the replay which finds it changes nothing."""

import re
import unittest

from covering import covering_rows
from harness import BIN, EndToEnd, metrics, run

SEQ_LEN, BATCH = 16, 4
BAD = 1  # a byte that no text has

# Layer `odd` divides by 0 where a token is BAD: 0 / 0, or the numerator of NUMERATOR.
MODEL = """
module attributes {ft.vocab_size = 256 : i64} {
  ft.parameter @table : tensor<256x32xf32> = #ft.init<normal, 1.0> {layer = "embed"}
  ft.parameter @"h.0.weight" : tensor<32x32xf32> = #ft.init<normal, 0.2> {layer = "h.0"}
  ft.parameter @"h.1.weight" : tensor<32x32xf32> = #ft.init<normal, BIG> {layer = "h.1"}
  ft.parameter @"head.weight" : tensor<256x32xf32> = #ft.init<normal, 0.1> {layer = "head"}
  func.func @forward(%tokens: tensor<4x16xi32>, %targets: tensor<4x16xi32>) -> tensor<f32> {
    %t = ft.get @table {layer = "embed"} : tensor<256x32xf32>
    %x = ft.embedding %tokens, %t {layer = "embed"} : (tensor<4x16xi32>, tensor<256x32xf32>) -> tensor<4x16x32xf32>
    %w = ft.get @"h.0.weight" {layer = "h.0"} : tensor<32x32xf32>
    %h = ft.matmul %x, %w {layer = "h.0"} : (tensor<4x16x32xf32>, tensor<32x32xf32>) -> tensor<4x16x32xf32>
    %n = ft.convert %tokens {layer = "odd"} : tensor<4x16xi32> -> tensor<4x16xf32>
    %one = ft.fill 1.0 {layer = "odd"} : tensor<4x16xf32>
    %d = ft.sub %n, %one {layer = "odd"} : tensor<4x16xf32>
    %q = ft.div %NUMERATOR, %d {layer = "odd"} : tensor<4x16xf32>
    %c = ft.reshape %q {layer = "odd"} : tensor<4x16xf32> -> tensor<4x16x1xf32>
    %b = ft.broadcast %c {layer = "odd"} : tensor<4x16x1xf32> -> tensor<4x16x32xf32>
    %m = ft.mul %h, %b {layer = "odd"} : tensor<4x16x32xf32>
    %v = ft.get @"h.1.weight" {layer = "h.1"} : tensor<32x32xf32>
    %y = ft.matmul %m, %v {layer = "h.1"} : (tensor<4x16x32xf32>, tensor<32x32xf32>) -> tensor<4x16x32xf32>
    %z = ft.add %y, %x {layer = "h.1"} : tensor<4x16x32xf32>
    %hd = ft.get @"head.weight" {layer = "head"} : tensor<256x32xf32>
    %logits = ft.matmul %z, %hd transpose_b {layer = "head"} : (tensor<4x16x32xf32>, tensor<256x32xf32>) -> tensor<4x16x256xf32>
    %loss = ft.cross_entropy %logits, %targets {layer = "head"} : (tensor<4x16x256xf32>, tensor<4x16xi32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
"""

# The loss is finite and a gradient is not: sqrt(d^2 + bias) at 0, as the bias is 0 before the first step. The bias lies in the unit UNIT.
GRADIENT = MODEL.replace("  func.func", '  ft.parameter @"h.0.bias" : tensor<32xf32> = #ft.init<constant, 0.0> {layer = "UNIT"}\n  func.func').replace(
    '%q = ft.div %NUMERATOR, %d {layer = "odd"} : tensor<4x16xf32>', '%q = ft.mul %d, %d {layer = "odd"} : tensor<4x16xf32>').replace(
    '%m = ft.mul %h, %b {layer = "odd"} : tensor<4x16x32xf32>', """%p = ft.get @"h.0.bias" {layer = "odd"} : tensor<32xf32>
    %pb = ft.broadcast %p {layer = "odd"} : tensor<32xf32> -> tensor<4x16x32xf32>
    %u = ft.add %b, %pb {layer = "odd"} : tensor<4x16x32xf32>
    %s = ft.sqrt %u {layer = "odd"} : tensor<4x16x32xf32>
    %tiny = ft.fill 0.001 {layer = "odd"} : tensor<4x16x32xf32>
    %k = ft.mul %s, %tiny {layer = "odd"} : tensor<4x16x32xf32>
    %m = ft.add %h, %k {layer = "odd"} : tensor<4x16x32xf32>""")

# Gradients of 2e38 on each rank, of which the sum overflows: of a term of the loss that is 0 before the first step.
SUM = MODEL.replace("  func.func", '  ft.parameter @"h.0.bias" : tensor<32xf32> = #ft.init<constant, 0.0> {layer = "h.0"}\n  func.func').replace(
    "%loss = ft.cross_entropy", "%entropy = ft.cross_entropy").replace(
    "    return", """    %p = ft.get @"h.0.bias" {layer = "odd"} : tensor<32xf32>
    %big = ft.fill 2.0e38 {layer = "odd"} : tensor<32xf32>
    %pb = ft.mul %p, %big {layer = "odd"} : tensor<32xf32>
    %term = ft.reduce "sum" %pb over [0] {layer = "odd"} : tensor<32xf32> -> tensor<f32>
    %loss = ft.add %entropy, %term {layer = "odd"} : tensor<f32>
    return""").replace('%d = ft.sub %n, %one {layer = "odd"}', '%d = ft.add %n, %one {layer = "odd"}').replace("NUMERATOR", "d")


class FindNan(EndToEnd):
    def compiled(self, *options, numerator="d", big="0.2", model=MODEL, unit="odd"):
        source, plan = self.dir / "model.mlir", self.dir / "plan.bin"
        source.write_text(model.replace("NUMERATOR", numerator).replace("BIG", big).replace("UNIT", unit))
        self.check("ftc", "compile", source, *options, "-o", plan)
        return plan

    def data(self, *places, world):
        """Text with BAD in the sequences that (micro-step, rank) of `places` take without shuffling."""
        text = bytearray(self.text.read_bytes())
        for micro_step, rank in places:
            text[((micro_step * world + rank) * BATCH + 1) * SEQ_LEN + 10] = BAD
        path = self.dir / "data.txt"
        path.write_bytes(text)
        return path

    def run_ranks(self, plan, world, data, *options, steps=4):
        """What is said on standard error, what a step gives, and the weights."""
        out, weights = self.dir / "metrics.jsonl", self.dir / "weights.safetensors"
        out.unlink(missing_ok=True)
        done = run("ftrun", f"--nproc-per-node={world}", "--standalone", BIN / "ftexec", plan, f"--data={data}", "--shuffle=off", f"--steps={steps}",
                   f"--metrics={out}", "--progress=off", f"--save-weights={weights}", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [{key: row[key] for key in ("loss", "grad_norm", "skipped", "loss_scale") if key in row} for row in metrics(out)]
        return done.stderr, rows, weights.read_bytes()

    def found(self, stderr):
        """The one line about where it began, behind the step."""
        lines = re.findall(r"step (\d+/\d+) is not finite: (.*)", stderr)
        self.assertEqual(len(lines), 1, stderr)
        return lines[0]

    OPTIONS = {
        "strategy": ("no_shard", "zero1", "shard_grad_op", "full_shard", "hybrid_shard", "hybrid_shard_zero2"),
        "world": (1, 2, 3),
        "micro_steps": (1, 3),
        "accumulate": ("last", "each"),
        "remat": ("none", "every_n:1", "full"),
        "offload": ("none", "optimizer", "optimizer:step", "activations", "parameters"),
        "precision": ("no", "bf16", "bf16 alone", "fp16"),
        "optimizer": ("adamw", "sgd", "muon", "adafactor"),
        "trained": ("all", "not h.0.*", "adapters"),
        "prefetch": ("pre", "none"),
    }

    def flags(self, row):
        flags = [f"--{name}={row[name]}" for name in ("strategy", "remat", "offload", "optimizer", "prefetch")]
        flags += [f"--micro-steps={row['micro_steps']}", f"--mixed-precision={row['precision'].removesuffix(' alone')}", "--initial-scale-power=8"]
        flags += {"all": [], "not h.0.*": ["--frozen=h.0.*"], "adapters": ["--lora=r:3,alpha:4,targets:all-linear"]}[row["trained"]]
        flags += [f"--accumulate={row['accumulate']}"] if row["micro_steps"] > 1 else []
        return flags + (["--master-weights=off", "--stochastic-rounding"] if row["precision"] == "bf16 alone" else [])

    def test_rank_layer_and_op_for_every_pair_of_options(self):
        """One rank divides by zero in one micro-step of step 2. The replay finds it, and the run goes on as without it, to the bit."""
        for row in covering_rows(self.OPTIONS):
            with self.subTest(**row):
                plan, world, micro_steps = self.compiled(*self.flags(row)), row["world"], row["micro_steps"]
                rank, bad = world - 1, micro_steps // 2
                data = self.data((micro_steps + bad, rank), world=world)
                stderr, rows, weights = self.run_ranks(plan, world, data)
                step, text = self.found(stderr)
                self.assertEqual(step, "2/4")
                self.assertEqual(["skipped" in row for row in rows], [False, True, False, False])
                where = (f"rank {rank}, " if world > 1 else "") + (f"micro-step {bad + 1}, " if micro_steps > 1 else "")
                program = "train_step" if bad == micro_steps - 1 else "train_micro"
                self.assertRegex(text, rf"^{where}layer odd, cluster of [^(]*div[^(]* \(forward, {program} \d+\): \d+ of \d+ elements( of result \d)? "
                                 r"(is|are) NaN, first at \d+; its inputs were finite$")
                _, other_rows, other_weights = self.run_ranks(plan, world, data, "--find-nan=off")
                self.assertEqual((rows, weights), (other_rows, other_weights))

    def expect_gradient(self, strategy, micro_steps, world, *mesh):
        """One rank makes a gradient infinite, of elements that lie in the slice of another one, in one micro-step of step 1; the loss is finite."""
        for rank in range(world):
            with self.subTest(strategy=strategy, micro_steps=micro_steps, world=world, mesh=mesh, rank=rank):
                # A unit of one block lies in the first rank's slice; behind the 1,024 weights of h.0 the bias begins the second block.
                first_of_shard = rank % 2 == 0 if mesh else rank == 0
                plan = self.compiled(f"--strategy={strategy}", f"--micro-steps={micro_steps}", model=GRADIENT, unit="h.0" if first_of_shard else "odd")
                bad = rank % micro_steps
                data = self.data((bad, rank), world=world)
                stderr, rows, weights = self.run_ranks(plan, world, data, *mesh, steps=2)
                self.assertRegex(stderr, "step 1/2: gradient norm inf: step not applied")
                self.assertTrue(rows[0]["skipped"] and rows[0]["loss"] is not None, rows)
                program = "train_step" if bad == micro_steps - 1 else "train_micro"
                where = f"rank {rank}, " + (f"micro-step {bad + 1}, " if micro_steps > 1 else "")
                self.assertRegex(self.found(stderr)[1], rf"^{where}layer odd, cluster of [^(]*div[^(]* \(backward, {program} \d+\): \d+ of \d+ elements( of result \d)? "
                                 r"are infinite, first at \d+; its inputs were finite$")
                self.assertEqual((rows, weights), self.run_ranks(plan, world, data, "--find-nan=off", *mesh, steps=2)[1:])

    def test_a_gradient_of_zero1(self):
        for micro_steps in (1, 3):
            for world in (2, 3):
                self.expect_gradient("zero1", micro_steps, world)

    def test_a_gradient_of_zero2(self):
        for micro_steps in (1, 3):
            for world in (2, 3):
                self.expect_gradient("shard_grad_op", micro_steps, world)

    def test_a_gradient_of_full_shard(self):
        for micro_steps in (1, 3):
            for world in (2, 3):
                self.expect_gradient("full_shard", micro_steps, world)

    def test_a_gradient_of_hybrid_strategies(self):
        for micro_steps in (1, 3):
            for world in (2, 3):
                self.expect_gradient("hybrid_shard", micro_steps, world)
            self.expect_gradient("hybrid_shard", micro_steps, 4, "--mesh=replica:2,shard:2")
            self.expect_gradient("hybrid_shard_zero2", micro_steps, 4, "--mesh=replica:2,shard:2")

    def test_a_sum_over_ranks_that_overflows(self):
        """No rank is at fault: named is the sum, and the rank whose slice the numbers lie in; without slices, all."""
        for strategy, ranks, collective in (("full_shard", "rank 1", "reduce_scatter"), ("zero1", "rank 1", "reduce_scatter"), ("no_shard", "ranks 0,1", "all_reduce")):
            with self.subTest(strategy=strategy):
                plan = self.compiled(f"--strategy={strategy}", model=SUM)
                stderr, rows, _ = self.run_ranks(plan, 2, self.text, steps=1)
                self.assertTrue(rows[0]["skipped"] and rows[0]["loss"] is not None, rows)
                self.assertRegex(self.found(stderr)[1], rf"^{ranks}, .*{collective}.*: 32 of \d+ elements( of result \d)? are infinite, first at \d+; what the ranks brought was finite$")

    def test_off_says_nothing_more(self):
        plan = self.compiled("--strategy=full_shard")
        stderr, _, _ = self.run_ranks(plan, 2, self.data((1, 0), world=2), "--find-nan=off")
        self.assertRegex(stderr, "step 2/4: loss nan: step not applied")
        self.assertNotIn("is not finite", stderr)
        done = run("ftexec", plan, f"--data={self.text}", "--find-nan=maybe")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)

    def test_the_earliest_of_all_ranks(self):
        plan = self.compiled("--strategy=full_shard", "--micro-steps=2")
        _, text = self.found(self.run_ranks(plan, 3, self.data((2, 1), (3, 0), (2, 2), world=3), steps=2)[0])
        self.assertRegex(text, "^ranks 1,2, micro-step 1, layer odd, ")

    def test_infinity_and_the_nan_of_it(self):
        plan = self.compiled("--strategy=full_shard", numerator="one")
        _, text = self.found(self.run_ranks(plan, 2, self.data((1, 1), world=2), steps=2)[0])
        self.assertRegex(text, r"^rank 1, layer odd, cluster of [^(]*div[^(]* \(forward, train_step \d+\): \d+ of \d+ elements( of result \d)? are infinite, first at "
                         r"\d+; its inputs were finite; then layer h.1, matmul \(forward, train_step \d+\): 32 of 2048 elements are NaN, first at \d+$")

    def test_a_product_that_overflows_on_all_ranks(self):
        plan = self.compiled("--strategy=zero1", big="1.0e38")
        stderr, rows, _ = self.run_ranks(plan, 2, self.data(world=2), "--max-bad-steps=9", steps=3)
        step, text = self.found(stderr)
        self.assertEqual(step, "1/3")
        self.assertTrue(all(row["skipped"] for row in rows))
        self.assertRegex(text, r"^ranks 0,1, layer h.1, matmul \(forward, train_step \d+\): ")

    def test_a_checkpoint_under_way_is_no_hindrance(self):
        plan = self.compiled("--strategy=full_shard")
        data = self.data((1, 1), world=2)
        stderr, rows, weights = self.run_ranks(plan, 2, data, f"--checkpoint-dir={self.dir / 'saved'}", "--save-every=1")
        self.assertRegex(self.found(stderr)[1], "^rank 1, layer odd, ")
        self.assertEqual((rows, weights), self.run_ranks(plan, 2, data, "--find-nan=off")[1:])


if __name__ == "__main__":
    unittest.main()
