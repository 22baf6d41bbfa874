"""Budgets hold with every pair of options: what is announced as the smallest is met, and nothing below it is.

Compiling only: models are as wide as those that need budgets, but for the last tests have few layers.
"""

import json
import re
import resource
import unittest

from covering import covering_rows
from harness import EndToEnd, run

MODELS = {
    "llama3-70b": ("llama3-70b", "--layers=4", "--batch=1", "--seq=2048"),
    "llama3-405b": ("llama3-8b", "--layers=3", "--hidden=16384", "--heads=128", "--kv-heads=8", "--ffn=53248", "--batch=1", "--seq=2048"),
    "gpt2": ("gpt2", "--preset=1.5b", "--layers=4", "--batch=2"),
    "free_transformer": ("free_transformer",),
}
OPTIONS = {
    "model": tuple(MODELS),
    "strategy": ("no_shard", "zero1", "shard_grad_op", "full_shard", "hybrid_shard", "hybrid_shard_zero2"),
    "prefetch": ("none", "pre", "post", "auto"),
    "offload": ("none", "optimizer", "activations", "parameters", "optimizer,parameters,activations", "optimizer:step"),
    "world": (1, 8, 64, 1000),
    "precision": ("no", "bf16", "bf16 alone", "fp16"),
    "target": ("cpu", "h100", "h100-ib"),
    "micro_steps": (1, 3),
    "wrap": ("transformer", "size", "none"),
    "persistence": (0, 100_000),
    "limit_all_gathers": (0, 1, 2),
    "buckets": (0, 100),
}
TOO_SMALL = re.compile(r"cannot be met; the smallest feasible budget is (\d+) bytes: its peak is at ")
SECONDS = 45
LLAMA3_405B = ("--layers=126", "--hidden=16384", "--heads=128", "--kv-heads=8", "--ffn=53248", "--batch=1", "--seq=8192")


class Budgets(EndToEnd):
    def source(self, name, *command):
        path = self.shared / f"{name}.mlir"
        if not path.exists():
            self.check("ftc", "model", *command, "-o", path)
        return path

    def compile(self, source, *flags):
        """The plan's arena within a budget, and the smallest budget where it is too small: one of them is None."""
        plan = self.dir / "plan.bin"
        done = run("ftc", "compile", source, *flags, "--code=none", "-o", plan)  # no byte of an arena depends on it
        if done.returncode == 0:
            return plan, None
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (65, 1), done.stderr)
        self.assertRegex(done.stderr, TOO_SMALL)
        return None, int(TOO_SMALL.search(done.stderr)[1])

    def arena(self, plan, world, target):
        return json.loads(self.check("ftc", "explain", plan, f"--world-size={world}", f"--target={target}",
                                     "--json").stdout)["arena_bytes"]


class BudgetPairs(Budgets):
    def flags(self, row):
        flags = [f"--{name}={row[name]}" for name in ("strategy", "prefetch", "offload", "target", "wrap")]
        flags += [f"--world-size={row['world']}", f"--mixed-precision={row['precision'].removesuffix(' alone')}",
                  f"--micro-steps={row['micro_steps']}", f"--persistence-threshold={row['persistence']}",
                  f"--limit-all-gathers={row['limit_all_gathers']}", f"--gather-bucket-mb={row['buckets']}",
                  f"--reduce-bucket-mb={row['buckets']}"]
        if row["precision"].endswith("alone"):
            flags.append("--master-weights=off")
        return flags

    def smallest(self, source, flags):
        plan, smallest = self.compile(source, *flags, "--remat=budget:1")
        self.assertIsNone(plan)
        return smallest

    def assertMet(self, source, flags, budget, row):
        plan, needed = self.compile(source, *flags, f"--remat=budget:{budget}")
        self.assertIsNone(needed, f"{budget} cannot be met")
        self.assertLessEqual(self.arena(plan, row["world"], row["target"]), budget)

    def test_every_pair_of_options(self):
        for row in covering_rows(OPTIONS):
            with self.subTest(**row):
                source, flags = self.source(row["model"], *MODELS[row["model"]]), self.flags(row)
                smallest = self.smallest(source, flags)
                self.assertMet(source, flags, smallest, row)
                self.assertEqual(self.compile(source, *flags, f"--remat=budget:{smallest * 99 // 100}"), (None, smallest))
                if row["prefetch"] == "auto":
                    # What is feasible with another one is feasible with it.
                    for other in ("pre", "none"):
                        least = self.smallest(source, self.flags({**row, "prefetch": other}))
                        self.assertLessEqual(smallest, least)
                        self.assertMet(source, flags, least, row)
                    # A bound on what auto may use is one more on the whole.
                    self.assertMet(source, [*flags, f"--memory-budget={smallest}"], 2 * smallest, row)


class LargeModels(Budgets):
    """At their full size, with the time that it takes ftc: of the processor, and six times what a quiet machine needs (6 to 8 s), as
    others may be running on it, which has been seen to triple it."""

    def met(self, source, seconds, world, budget, *flags):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        plan, needed = self.compile(source, "--target=h100-ib", f"--world-size={world}", "--mixed-precision=bf16",
                                    f"--remat=budget:{budget}", *flags)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertIsNone(needed, "cannot be met")
        self.assertLess(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, seconds)
        self.assertLessEqual(self.arena(plan, world, "h100-ib"), budget)

    def test_llama3_405b(self):
        source = self.source("405b", "llama3-8b", *LLAMA3_405B)
        for prefetch in ("pre", "auto"):
            with self.subTest(prefetch=prefetch):
                self.met(source, SECONDS, 1024, 75 << 30, "--strategy=full_shard", f"--prefetch={prefetch}")

    def test_llama3_70b(self):
        source = self.source("70b", "llama3-70b", "--batch=1")
        for strategy, gigabytes in (("full_shard", 40), ("hybrid_shard", 180)):
            for prefetch, offload in (("pre", "activations"), ("auto", "none")):
                with self.subTest(strategy=strategy, prefetch=prefetch, offload=offload):
                    self.met(source, SECONDS, 64, gigabytes * 10**9, f"--strategy={strategy}", f"--prefetch={prefetch}",
                             f"--offload={offload}")


if __name__ == "__main__":
    unittest.main()
