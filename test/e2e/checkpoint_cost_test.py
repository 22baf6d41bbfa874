"""What checkpoints cost the steps between them: no allocation."""

import os
import pathlib
import re
import tempfile
import unittest

from harness import BIN, EndToEnd, environment

COUNTER = os.environ["FT_COUNT_ALLOCATIONS"]


class Allocations(EndToEnd):
    def allocations(self, plan, world, steps, every, *options):
        """Of the ranks of a run that saves twice, after `every` steps and at its end, into a folder of its own."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.dir))
        done = self.check("ftrun", f"--nproc-per-node={world}", "--standalone", BIN / "ftexec", plan, f"--data={self.text}",
                          f"--steps={steps}", f"--checkpoint-dir={folder}", f"--save-every={every}", "--progress=off",
                          f"--metrics={folder / 'metrics.jsonl'}", *options, env=environment(LD_PRELOAD=COUNTER))
        self.assertEqual(len(list(folder.glob("step-*/manifest.json"))), 2)
        counts = [int(count) for count in re.findall(r"allocations: (\d+)", done.stderr)]
        self.assertGreaterEqual(len(counts), world, done.stderr)
        return sum(counts)

    def test_steps_between_saves_allocate_nothing(self):
        for strategy, world, *options in (("full_shard", 1), ("full_shard", 2, "--state-dict-type=sharded"), ("no_shard", 2),
                                          ("full_shard", 2, "--async-save=off")):
            with self.subTest(strategy=strategy, world=world, options=options):
                plan = self.plan("gpt2", strategy)
                few = self.allocations(plan, world, 29, 15, *options)
                many = self.allocations(plan, world, 329, 165, *options)
                # A save may take a different number of them: whether it waits, and what comes in parts. One a step of one rank
                # would be 300.
                self.assertLess(abs(many - few), 150, (few, many))


if __name__ == "__main__":
    unittest.main()
