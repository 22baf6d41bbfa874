"""bf16 weights without fp32 masters: rounded to nearest or stochastically, no option changes a bit, and small steps count."""

import json
import struct
import unittest

import harness

ALONE = ("--mixed-precision=bf16", "--reduce-dtype=fp32", "--master-weights=off")
STOCHASTIC = (*ALONE, "--stochastic-rounding")
# How the same numbers can be come by: strategies, units, offload, recomputation.
WAYS = (
    ("no_shard",),
    ("zero1",),
    ("shard_grad_op",),
    ("full_shard",),
    ("full_shard", "--wrap=none"),
    ("zero1", "--wrap=size", "--min-num-params=60000", "--offload=optimizer"),
    ("shard_grad_op", "--offload=optimizer"),
    ("zero1", "--offload=optimizer:step"),
    ("full_shard", "--offload=optimizer,parameters", "--persistence-threshold=1000", "--remat=every_n:1"),
)


def tensors(path):
    """Name -> type, shape and bytes of a safetensors file."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return {name: (entry["dtype"], entry["shape"], data[8 + length:][slice(*entry["data_offsets"])])
            for name, entry in header.items()}


class Runs(harness.EndToEnd):
    def compiled(self, *options):
        source, plan = self.dir / "model.mlir", self.dir / f"{len(list(self.dir.iterdir()))}.bin"
        if not source.exists():
            self.check("ftc", "model", "gpt2", "-o", source)
        self.check("ftc", "compile", source, *options, "-o", plan)
        self.check("ftc", "verify", plan)
        return plan

    def run_of(self, plan, world, *options, steps=5):
        """Losses, norms and weights; the arenas are those that were announced."""
        saved = self.dir / "saved.safetensors"
        rows = self.train(plan, world, "--shuffle=off", "--threads=1", f"--save-weights={saved}", *options, steps=steps)
        announced = self.explain(plan, world)
        for key in ("arena_bytes", "host_arena_bytes"):
            self.assertEqual({row.get(key, 0) for row in rows}, {announced[key]}, key)
        return [(row["loss"], row["grad_norm"]) for row in rows], tensors(saved)


class Bf16Weights(Runs):
    def assert_every_way_agrees(self, world, *options):
        plain = None
        for strategy, *others in WAYS:
            with self.subTest(world=world, strategy=strategy, others=others):
                run = self.run_of(self.compiled(f"--strategy={strategy}", *others, *options), world)
                plain = plain or run
                self.assertEqual(run[0], plain[0])
                self.assertEqual(run[1], plain[1])
        self.assertEqual({dtype for dtype, _, _ in plain[1].values()}, {"BF16"})
        return plain

    def test_every_way_rounds_the_same(self):
        for world in (1, 2, 3):
            stochastic = self.assert_every_way_agrees(world, *STOCHASTIC)
            # The first step is before any rounding of updates.
            plan = self.compiled("--strategy=full_shard", *ALONE)
            nearest = self.run_of(plan, world)
            self.assertEqual(nearest[0][0], stochastic[0][0])
            self.assertNotEqual(nearest[1], stochastic[1])

    def test_to_nearest_and_over_micro_steps(self):
        self.assert_every_way_agrees(2, *ALONE)
        self.assert_every_way_agrees(2, *STOCHASTIC, "--micro-steps=2", "--clip=0.25", "--optimizer=sgd", "--momentum=0.9")

    def test_the_seed_draws(self):
        start = self.dir / "start.safetensors"
        self.train(self.compiled("--strategy=no_shard"), 1, f"--save-weights={start}", steps=1)
        runs = {}
        for name, options in (("nearest", ALONE), ("stochastic", STOCHASTIC)):
            plan = self.compiled("--strategy=full_shard", *options)
            runs[name] = [self.run_of(plan, 2, f"--init={start}", f"--seed={seed}") for seed in (1, 1, 2)]
        self.assertEqual(runs["nearest"][0], runs["nearest"][2], "nothing else is random")
        first, again, other = runs["stochastic"]
        self.assertEqual(first, again)
        self.assertEqual(first[0][0], other[0][0])
        self.assertNotEqual(first[1], other[1])

    def test_weights_go_out_and_in_unchanged(self):
        plan = self.compiled("--strategy=full_shard", *STOCHASTIC)
        first = self.run_of(plan, 2)
        start = self.dir / "start.safetensors"
        (self.dir / "saved.safetensors").rename(start)
        still = self.run_of(self.compiled("--strategy=zero1", *STOCHASTIC), 3, f"--init={start}", "--lr=0", steps=1)
        self.assertEqual(still[1], first[1])

    def test_small_steps_count(self):
        """With steps mostly below half the distance of neighbours, to nearest learns less than fp32, stochastically as much."""
        ends = {}
        for name, options in (("fp32", ()), ("nearest", ALONE), ("stochastic", STOCHASTIC)):
            rows = self.train(self.compiled("--strategy=full_shard", *options), 1, "--shuffle=off", "--lr=2e-5", steps=150)
            ends[name] = sum(row["loss"] for row in rows[-10:]) / 10
        self.assertGreater(ends["nearest"] - ends["fp32"], 10 * abs(ends["stochastic"] - ends["fp32"]), ends)

    def test_twelve_bytes_a_parameter(self):
        plan = self.compiled("--strategy=no_shard", "--mixed-precision=bf16", "--master-weights=off")
        report = self.explain(plan, 1)
        rest = report["at_rest"]
        self.assertEqual(rest["of_optimizer_state_master"], 0)
        elements = rest["parameters"] // 2  # padding included
        self.assertGreaterEqual(elements, report["parameters"])
        self.assertEqual((rest["gradients"], rest["optimizer_state"]), (2 * elements, 8 * elements))

    def test_where_it_cannot_apply(self):
        source = self.dir / "model.mlir"
        self.check("ftc", "model", "gpt2", "-o", source)
        for options, message in (
            (("--stochastic-rounding",), "stochastic rounding wants bf16 weights without fp32 masters"),
            (("--stochastic-rounding", "--mixed-precision=bf16"), "stochastic rounding wants bf16 weights without fp32 masters"),
            (("--master-weights=off",), "fp32 weights are their own master"),
            (("--master-weights=off", "--mixed-precision=fp16"), "fp16 weights want fp32 masters"),
        ):
            with self.subTest(options=options):
                done = harness.run("ftc", "compile", source, "--strategy=full_shard", *options, "-o", self.dir / "p.bin")
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertIn(message, done.stderr)


if __name__ == "__main__":
    unittest.main()
