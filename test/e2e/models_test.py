"""Models of the zoo beyond those of the other tests: strategies and options change no bit, the ways of computing experts agree,
and a classifier of pictures learns what is in them."""

import array
import math
import struct
import sys
import unittest

from harness import BIN, SOURCE, EndToEnd, metrics, run

sys.path.insert(0, str(SOURCE / "test/golden"))
import weights

ALL = ("no_shard", "zero1", "shard_grad_op", "full_shard", "hybrid_shard", "hybrid_shard_zero2")
MODELS = (("qwen3",), ("gemma2",), ("gemma3",), ("mixtral",), ("qwen3_moe", "--routing=grouped"), ("vit",), ("bert",), ("bert_classifier",))
# Another row changes a bit, another column must not: precision, then how it is computed.
ROWS = (((), ((), ("--remat=full",), ("--offload=optimizer,activations", "--prefetch=none"))),
        (("--mixed-precision=bf16",), ((), ("--remat=every_n:2", "--offload=parameters"))))


class Models(EndToEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.data = {model: cls.shared / f"{model}.safetensors" for model in weights.INPUTS}
        for model, path in cls.data.items():
            weights.write_safetensors(str(path), weights.examples(model))

    def losses(self, model, world, strategy, *options):
        """`model` is what ftc model is given."""
        source, plan = self.dir / "m.mlir", self.dir / "p.bin"
        self.check("ftc", "model", *model, "-o", source)
        self.check("ftc", "compile", source, f"--strategy={strategy}", *options, "-o", plan)
        rows = self.train(plan, world, "--lr=1e-3", steps=4, data=self.data.get(model[0], self.text))
        self.assertTrue(all(math.isfinite(row["loss"]) for row in rows))
        self.assertEqual({row["arena_bytes"] for row in rows}, {self.explain(plan, world)["arena_bytes"]})
        return [(row["loss"], row["grad_norm"]) for row in rows]

    def test_strategies_and_options_change_no_bit(self):
        for number, model in enumerate(MODELS):
            world = 2 + number % 2
            for precision, ways in ROWS:
                with self.subTest(model=model, world=world, precision=precision):
                    strategies = ALL if not precision else ("zero1", "full_shard")
                    found = [self.losses(model, world, strategy, *precision) for strategy in strategies]
                    found += [self.losses(model, world, "full_shard", *precision, *way) for way in ways[1:]]
                    self.assertEqual(found, found[:1] * len(found))

    def test_both_ways_of_computing_experts(self):
        """The same sums in another order."""
        for model in ("mixtral", "qwen3_moe"):
            found = [self.losses((model, f"--routing={routing}", "--experts=7", "--active-experts=3"), 1, "no_shard")
                     for routing in ("dense", "grouped")]
            for dense, grouped in zip(*found):
                self.assertAlmostEqual(dense[0], grouped[0], delta=1e-5 * dense[0])
                self.assertAlmostEqual(dense[1], grouped[1], delta=1e-4 * dense[1])

    def test_experts_over_micro_steps(self):
        """Their gradients are added up by the product of groups itself."""
        for precision in ((), ("--mixed-precision=bf16", "--reduce-dtype=fp32")):
            for accumulate in ("last", "each"):
                with self.subTest(precision=precision, accumulate=accumulate):
                    found = [self.losses(("qwen3_moe", "--routing=grouped"), 2, strategy, "--micro-steps=2",
                                         f"--accumulate={accumulate}", *precision) for strategy in ALL]
                    self.assertEqual(found, found[:1] * len(found))

    def test_the_parts_of_a_loss_of_experts_are_evaluated(self):
        source, plan, out = self.dir / "m.mlir", self.dir / "p.bin", self.dir / "metrics.jsonl"
        self.check("ftc", "model", "mixtral", "-o", source)
        self.check("ftc", "compile", source, "--strategy=full_shard", "-o", plan)
        self.check("ftexec", plan, f"--data={self.text}", f"--eval-data={self.text}", "--steps=0", f"--metrics={out}")
        (row,) = metrics(out)
        self.assertAlmostEqual(row["eval_loss"], row["eval_cross_entropy"] + 0.02 * row["eval_router_loss"], places=5)
        # 2 choices of each token, of 4 experts: 2 where they are equally probable and chosen equally often.
        self.assertLess(abs(row["eval_router_loss"] - 2), 0.5)

    def test_pictures_are_learned(self):
        """The mean of the pixels says the label."""
        count, size = 64, 3 * 32 * 32
        labels = [k * 7 % 10 for k in range(count)]
        noise = weights.examples("vit")["pixels"][1]
        pixels = array.array("f", (0.2 * noise[k * size + i] + (labels[k] - 4.5) / 3 for k in range(count) for i in range(size)))
        data = self.dir / "means.safetensors"
        weights.write_safetensors(str(data), {"pixels": ([count, 3, 32, 32], pixels), "labels": ([count], array.array("q", labels))})
        source, plan, out = self.dir / "m.mlir", self.dir / "p.bin", self.dir / "metrics.jsonl"
        self.check("ftc", "model", "vit", "--batch=8", "-o", source)
        self.check("ftc", "compile", source, "--strategy=full_shard", "-o", plan)
        self.check("ftexec", plan, f"--data={data}", f"--eval-data={data}", "--eval-every=150", "--steps=150", "--lr=2e-3", f"--metrics={out}")
        last = [row for row in metrics(out) if "eval_accuracy" in row][-1]
        self.assertGreater(last["eval_accuracy"], 0.5)  # 0.1 by chance

    def test_options_that_a_family_lacks(self):
        for command, words in ((("vit", "--seq=8"), "vit: --seq is an option of"), (("gpt2", "--kv-heads=2"), "gpt2: --kv-heads is an option of"),
                               (("mixtral", "--routing=sparse"), "expected dense|grouped"), (("vit", "--patch=5"), "not divisible")):
            done = run("ftc", "model", *command)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
