"""Gradient accumulation: k micro-steps are one step of the k-fold batch, and gradients travel once."""

import json
import unittest

from harness import STRATEGIES, EndToEnd, metrics

MICRO_STEPS = 8
STEPS = 5


class Accumulation(EndToEnd):
    def compiled(self, model, strategy, batch, *options):
        key = ("accumulation", model, strategy, batch, *options)
        if key not in self.plans:
            source, target = self.shared / f"{len(self.plans)}.mlir", self.shared / f"{len(self.plans)}.bin"
            self.check("ftc", "model", model, f"--batch={batch}", "-o", source)
            self.check("ftc", "compile", source, f"--strategy={strategy}", *options, "-o", target)
            self.plans[key] = target
        return self.plans[key]

    def curve(self, plan, world, *options):
        return [(row["loss"], row["grad_norm"]) for row in self.train(plan, world, "--shuffle=off", *options, steps=STEPS)]

    def test_equals_one_step_of_the_large_batch(self):
        """The same sequences in a step, cut in another way, so sums in fp32 are added in another order. Adam divides a
        gradient by its own size, so a rounding error of an element near 0 moves it by up to lr, and the curves part
        slowly: the first step must agree to rounding alone, the next ones to 1e-4."""
        for model in ("gpt2", "llama"):
            for world in (1, 2):
                with self.subTest(model=model, world=world):
                    micro = self.curve(self.compiled(model, "full_shard", 1, f"--micro-steps={MICRO_STEPS}"), world)
                    large = self.curve(self.compiled(model, "full_shard", MICRO_STEPS), world)
                    for step, (a, b) in enumerate(zip(micro, large)):
                        for ours, expected in zip(a, b):
                            self.assertLess(abs(ours / expected - 1), 1e-5 if step == 0 else 1e-4, (step, a, b))
                    self.assertNotEqual(micro[0][0], micro[1][0])

    def test_strategies_give_the_same_bits(self):
        for model in ("gpt2", "free_transformer"):
            for world in (1, 2, 3):
                curves = {strategy: self.curve(self.compiled(model, strategy, 2, "--micro-steps=3"), world)
                          for strategy in STRATEGIES}
                for strategy, curve in curves.items():
                    with self.subTest(model=model, world=world, strategy=strategy):
                        self.assertEqual(curve, curves["no_shard"])

    def reductions(self, plan):
        """Collectives of gradients in one step of rank 0, from the trace: number of them by name."""
        trace = self.dir / "trace.json"
        self.train(plan, 2, f"--trace={trace}", "--trace-steps=1", steps=1)
        counts = {}
        for event in json.loads(trace.read_text())["traceEvents"]:
            if event.get("ph") == "X" and event["pid"] == 0 and event["name"].startswith("reduce_scatter"):
                counts[event["name"]] = counts.get(event["name"], 0) + 1
        return counts

    def test_gradients_travel_in_the_last_micro_step(self):
        once = self.reductions(self.compiled("gpt2", "full_shard", 1))
        self.assertGreater(len(once), 0)
        last = self.reductions(self.compiled("gpt2", "full_shard", 1, f"--micro-steps={MICRO_STEPS}"))
        self.assertEqual(last, once)
        each = self.reductions(self.compiled("gpt2", "full_shard", 1, f"--micro-steps={MICRO_STEPS}", "--accumulate=each"))
        self.assertEqual(each, {name: MICRO_STEPS * count for name, count in once.items()})

    def test_all_micro_steps_are_counted(self):
        rows = self.train(self.compiled("gpt2", "full_shard", 2, "--micro-steps=3"), 2, steps=3)
        for row in rows:
            self.assertAlmostEqual(row["samples_per_s"] * row["step_ms"] / 1e3, 2 * 3 * 2, places=6)
            self.assertAlmostEqual(row["tokens_per_s"] / row["samples_per_s"], 64, places=6)

    def test_without_steps_it_is_one_pass_over_the_data(self):
        out = self.dir / "m.jsonl"
        plan = self.compiled("gpt2", "full_shard", 2, "--micro-steps=3")
        self.check("ftexec", plan, f"--data={self.text}", f"--metrics={out}", "--progress=off")
        sequences = (self.text.stat().st_size - 1) // 64
        self.assertEqual(len(metrics(out)), -(-sequences // 6))

    def test_the_trace_has_all_micro_steps(self):
        trace = self.dir / "trace.json"
        self.train(self.compiled("gpt2", "full_shard", 2, "--micro-steps=3"), 1, f"--trace={trace}", "--trace-steps=2", steps=3)
        events = json.loads(trace.read_text())["traceEvents"]
        optimizer = [e for e in events if e.get("ph") == "X" and e["name"].startswith("clip_coefficient")]
        embedding = [e for e in events if e.get("ph") == "X" and e["name"] == "embedding"]
        self.assertEqual(len(optimizer), 2)
        self.assertEqual(len(embedding) % 6, 0)
        self.assertGreater(len(embedding), 0)


if __name__ == "__main__":
    unittest.main()
