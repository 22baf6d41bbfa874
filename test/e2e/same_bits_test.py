"""At one world size the strategy never changes a bit of the losses and gradient norms; explain's arena is what ftexec allocates."""

import unittest

from harness import MODELS, STRATEGIES, EndToEnd


class SameBits(EndToEnd):
    def curves(self, model, strategy, world):
        plan = self.plan(model, strategy)
        rows = self.train(plan, world)
        self.assertEqual({row["arena_bytes"] for row in rows}, {self.explain(plan, world)["arena_bytes"]})
        return [(row["loss"], row["grad_norm"]) for row in rows]

    def test_strategies_agree_at_every_world_size(self):
        for model in (*MODELS, "baseline"):
            for world in (1, 2, 3, 4):
                with self.subTest(model=model, world=world):
                    curves = {strategy: self.curves(model, strategy, world) for strategy in STRATEGIES}
                    self.assertEqual(curves["shard_grad_op"], curves["no_shard"])
                    self.assertEqual(curves["full_shard"], curves["no_shard"])
                    losses = [loss for loss, _ in curves["no_shard"]]
                    self.assertLess(losses[-1], losses[0], "20 steps on text must lower the loss")

    def test_a_run_repeats_itself(self):
        for model in MODELS:
            with self.subTest(model=model):
                self.assertEqual(self.curves(model, "full_shard", 2), self.curves(model, "full_shard", 2))

    def test_the_seed_matters(self):
        plan = self.plan("gpt2", "full_shard")
        losses = [self.train(plan, 1, f"--seed={seed}", steps=1)[0]["loss"] for seed in (1, 2)]
        self.assertNotEqual(*losses)

    def test_communicators_agree(self):
        plan = self.plan("llama", "full_shard")
        curves = []
        for backend in ("shm", "gloo"):
            rows = self.train(plan, 3, f"--comm-backend={backend}", steps=5)
            curves.append([(row["loss"], row["grad_norm"]) for row in rows])
        self.assertEqual(*curves)


if __name__ == "__main__":
    unittest.main()
