"""Memory, traffic and counts that `ftc explain` promises."""

import unittest

from harness import MODELS, STRATEGIES, EndToEnd

BLOCK = 1024  # elements


class Explain(EndToEnd):
    def test_classes_sum_to_the_arena(self):
        for model in MODELS:
            for strategy in STRATEGIES:
                for world in (1, 2, 3, 8, 512):
                    with self.subTest(model=model, strategy=strategy, world=world):
                        report = self.explain(self.plan(model, strategy), world)
                        self.assertEqual(sum(report["bytes"].values()), report["arena_bytes"])
                        self.assertEqual(report["host_arena_bytes"], 0)
                        for backend in ("shm", "gloo"):
                            self.assertEqual(report["communicator_bytes"][backend] > 0, world > 1)

    def test_full_shard_holds_a_share(self):
        """Parameters + gradients + optimizer state at rest: 1/N of no_shard's, within one block per unit and tensor."""
        for model in MODELS:
            whole = self.explain(self.plan(model, "no_shard"), 1)["at_rest"]
            units = len(self.explain(self.plan(model, "full_shard"), 2)["traffic"]["by_unit"])
            for world in (2, 3, 4, 64):
                with self.subTest(model=model, world=world):
                    share = self.explain(self.plan(model, "full_shard"), world)["at_rest"]
                    for kind, tensors in (("parameters", 1), ("gradients", 1), ("optimizer_state", 2)):
                        self.assertGreaterEqual(share[kind] * world, whole[kind])
                        self.assertLessEqual(share[kind], whole[kind] / world + units * tensors * BLOCK * 4)

    def test_traffic_follows_the_formulas(self):
        """Per step and rank, in bytes of padded fp32 parameters P: no_shard 2P (N-1)/N; full_shard's gathers and reductions P (N-1)/N each."""
        world = 4
        none = self.explain(self.plan("llama", "no_shard"), world)
        full = self.explain(self.plan("llama", "full_shard"), world)
        kept = self.explain(self.plan("llama", "shard_grad_op"), world)
        share = (world - 1) / world
        whole = none["at_rest"]["parameters"]
        small = 4096  # scalars: loss and norm
        self.assertNotIn("all_gather", {k: v for k, v in none["traffic"].items() if v and isinstance(v, dict) and v["bytes"]})
        self.assertAlmostEqual(none["traffic"]["all_reduce"]["bytes"], 2 * whole * share, delta=small)
        padded = full["at_rest"]["parameters"] * world
        self.assertEqual(full["traffic"]["reduce_scatter"]["bytes"], padded * share)
        self.assertEqual(kept["traffic"]["all_gather"]["bytes"], padded * share)
        gathered = full["traffic"]["all_gather"]["bytes"]
        self.assertGreater(gathered, kept["traffic"]["all_gather"]["bytes"])
        self.assertLessEqual(gathered, 2 * padded * share)

    def test_flops_are_about_six_per_parameter_and_token(self):
        report = self.explain(self.plan("gpt2", "no_shard"), 1)
        tokens = 4 * 64
        self.assertGreater(report["flops"]["total"], 6 * report["parameters"] * tokens * 0.7)
        self.assertLess(report["flops"]["total"], 6 * report["parameters"] * tokens * 2)

    def test_the_table_names_the_classes(self):
        text = self.check("ftc", "explain", self.plan("gpt2", "full_shard"), "--world-size=2").stdout
        for word in ("parameters", "gradients", "optimizer state", "activations", "gathered", "workspace", "arena", "all_gather",
                     "reduce_scatter", "FLOPs"):
            self.assertIn(word, text)


if __name__ == "__main__":
    unittest.main()
