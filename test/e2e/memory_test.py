"""What a process holds beyond its arenas: reported, and bounded by things that have nothing to do with the model's size."""

import re
import unittest

from harness import BIN, STRATEGIES, EndToEnd

MIB = 1 << 20
# Code and libraries, a stack and an allocator's arena for each thread, the trace and progress of a run.
BASE = 64 * MIB
# A plan in memory, with its kernels and commands, by the bytes of its file.
PLAN = 16


class Memory(EndToEnd):
    def beyond(self, plan, world, *options):
        """Bytes that rank 0 reports at the end of a run: the most there was at any time."""
        done = self.check("ftrun", f"--nproc-per-node={world}", "--standalone", BIN / "ftexec", plan, f"--data={self.text}",
                          "--steps=3", "--progress=off", *options)
        found = re.findall(r"resident beyond the arenas: ([\d.]+) MiB, at most ([\d.]+) MiB so far", done.stdout)
        self.assertEqual(len(found), 2, done.stdout)  # before the first step and after the last
        return float(found[-1][1]) * MIB

    def bound(self, plan, world, backend):
        staging = self.explain(plan, world)["communicator_bytes"][backend]
        # Shared memory is counted by every rank that has touched it: each reads what all others have written.
        shared = staging * world if backend == "shm" else staging
        return BASE + shared + PLAN * plan.stat().st_size + self.text.stat().st_size

    def test_bounded_for_every_strategy(self):
        for strategy in STRATEGIES:
            plan = self.plan("gpt2", strategy)
            for world in (1, 2, 4):
                with self.subTest(strategy=strategy, world=world):
                    self.assertLess(self.beyond(plan, world), self.bound(plan, world, "shm"))

    def test_bounded_over_tcp(self):
        plan = self.plan("gpt2", "full_shard")
        self.assertLess(self.beyond(plan, 2, "--comm-backend=gloo"), self.bound(plan, 2, "gloo"))

    def test_does_not_grow_with_the_model(self):
        small = self.plan("gpt2", "full_shard")
        large = self.plan("gpt2", "full_shard", "--hidden=768", "--heads=12")
        arenas = [self.explain(plan, 2)["arena_bytes"] for plan in (small, large)]
        self.assertGreater(arenas[1], arenas[0] + 32 * MIB)
        # Saving weights passes slices on in pieces of 4 MiB.
        weights = self.dir / "w.safetensors"
        for options in ((), (f"--save-weights={weights}",)):
            with self.subTest(options=options):
                self.assertLess(self.beyond(large, 2, *options), self.beyond(small, 2, *options) + 12 * MIB)


if __name__ == "__main__":
    unittest.main()
