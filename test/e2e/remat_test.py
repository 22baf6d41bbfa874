"""Recomputation: the same bits, the memory that a policy promises, and budgets on a model that needs them."""

import resource
import unittest

from harness import MODELS, EndToEnd

POLICIES = ("every_n:1", "every_n:2", "segments:sqrt", "ops:attention,mlp,norms", "full")


class Remat(EndToEnd):
    def compiled(self, model, *options, layers=None):
        """Path of a debug preset's plan with full_shard."""
        key = (model, layers, *options)
        if key not in self.plans:
            source, plan = self.shared / f"{model}-{layers}.mlir", self.shared / f"{len(self.plans)}.bin"
            if not source.exists():
                self.check("ftc", "model", model, *([f"--layers={layers}"] if layers else []), "-o", source)
            self.check("ftc", "compile", source, "--strategy=full_shard", *options, "-o", plan)
            self.plans[key] = plan
        return self.plans[key]

    def losses(self, plan, world):
        return [(row["loss"], row["grad_norm"]) for row in self.train(plan, world, steps=3)]

    def test_same_bits(self):
        """Losses and gradient norms of every policy are those of keeping everything, to the last bit."""
        for model in MODELS:
            kept = self.compiled(model)
            arenas = [self.explain(self.compiled(model, *options), 1)["arena_bytes"] for options in ((), ("--remat=full",))]
            policies = (*POLICIES, f"budget:{sum(arenas) // 2}")
            for world in (1, 2):
                expected = self.losses(kept, world)
                self.assertEqual(len({loss for loss, _ in expected}), 3)  # it learns
                for policy in policies:
                    with self.subTest(model=model, world=world, policy=policy):
                        plan = self.compiled(model, f"--remat={policy}")
                        self.assertGreater(self.explain(plan, world)["flops"]["recompute"], 0)
                        self.assertEqual(self.losses(plan, world), expected)

    def test_every_layer_is_a_checkpoint(self):
        """At the peak: one layer's activations, the inputs of those before it, and the gradient that reaches it."""
        for model in ("gpt2", "llama"):
            of_a_layer = set()
            for layers in (2, 4, 8):
                with self.subTest(model=model, layers=layers):
                    plan = self.compiled(model, "--remat=every_n:1", layers=layers)
                    report = self.explain(plan, 1, "--peak=100000")
                    live = [b for b in report["live_at_peak"] if b["class"] == "activations"]
                    self.assertEqual(sum(b["bytes"] for b in live), report["bytes"]["activations"])
                    checkpoint = report["batch"] * report["seq_len"] * 64 * 4  # the debug presets are 64 wide
                    peak = report["peak"].split("layer ")[1].rstrip(")")
                    others = {}
                    for buffer in live:
                        if buffer["layer"] != peak:
                            others.setdefault(buffer["layer"], []).append(buffer["bytes"])
                    prefix, number = peak.rsplit(".", 1)
                    before = {f"{prefix}.{i}" for i in range(int(number))}
                    # The embedding's output is the first layer's input. The gradient is the head's, or of the layer that it reaches.
                    self.assertEqual({layer for layer in others if layer.startswith(prefix + ".")}, before)
                    head = len(others) - len(before) - 1
                    self.assertIn(head, (0, 1))
                    for layer, sizes in others.items():
                        # The embedding keeps the positions' numbers as well, one i32 each; or their cosines and sines, 8 f32 each.
                        self.assertEqual([size for size in sizes if size > 32 * report["seq_len"]], [checkpoint], layer)
                    of_a_layer.add(sum(b["bytes"] for b in live if b["layer"] == peak) + head * checkpoint)
            self.assertEqual(len(of_a_layer), 1, "a layer needs the same, however many there are")
            # What checkpoints are for: a layer takes far more than what is kept of the others.
            self.assertGreater(of_a_layer.pop(), 10 * checkpoint)

    def test_a_budget_reaches_what_full_reaches(self):
        """Also where the peak lies in the program of the micro-steps."""
        for model in MODELS:
            for steps in (1, 2):
                with self.subTest(model=model, steps=steps):
                    micro = f"--micro-steps={steps}"
                    full = self.explain(self.compiled(model, micro, "--remat=full"), 1)["arena_bytes"]
                    plan = self.compiled(model, micro, f"--remat=budget:{full}")
                    self.assertLessEqual(self.explain(plan, 1)["arena_bytes"], full)

    def test_budgets_of_llama3_70b(self):
        """On 64 GPUs: within the budget, more memory never recomputes more, and all of it quickly."""
        source, plan = self.dir / "model.mlir", self.dir / "plan.bin"
        self.check("ftc", "model", "llama3-70b", "-o", source)
        recomputed = []
        for gigabytes in (40, 50, 60, 80, 100):
            with self.subTest(gigabytes=gigabytes):
                # Processor time: the machine may be running other things, and ftc has one thread.
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                self.check("ftc", "compile", source, "--strategy=full_shard", "--world-size=64", "--target=h100",
                           f"--remat=budget:{gigabytes}GB", "-o", plan)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                # 3 to 10 s of processor time where this was written; the rest is for slower or busier machines.
                self.assertLess(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 30)
                report = self.explain(plan, 64, "--target=h100")
                self.assertEqual(report["device"], "cuda")
                self.assertLessEqual(report["arena_bytes"], gigabytes * 10**9)
                self.assertEqual(report["flops"]["model"], 870_537_794_420_736)
                recomputed.append(report["flops"]["recompute"])
        self.assertEqual(recomputed, sorted(recomputed, reverse=True))
        self.assertGreater(recomputed[0], recomputed[-1])
        self.assertGreater(recomputed[-1], 0)


if __name__ == "__main__":
    unittest.main()
