"""Windows on the arenas of emulated GPUs: they change no bit, take whole pages, and a peer that is lost in a gather by copy engines, which
nothing aborts, ends the others all the same."""

import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

import harness
from lost_rank_test import free_port

EMULATED = pathlib.Path(os.environ["FT_EMULATED"])
SMALL = ("--batch=1", "--seq=16", "--layers=2")
PAGE = 2 << 20
# Versions of NCCL without windows, with those for more than two ranks, and with all.
NONE, SEVERAL, ALL = 21900, 23007, 23102


class Windows(harness.EndToEnd):
    def setUp(self):
        super().setUp()
        source = self.dir / "model.mlir"
        self.check("ftc", "model", "gpt2", *SMALL, "-o", source)
        self.source = source

    def compiled(self, strategy, *options):
        plan = self.dir / "plan.bin"
        self.check("ftc", "compile", self.source, f"--strategy={strategy}", *options, "-o", plan)
        return plan

    def trained(self, plan, world, version, *options, machine=""):
        """Loss and norm of each step, and what the run said."""
        out = self.dir / "metrics.jsonl"
        out.unlink(missing_ok=True)
        done = self.check("ftrun", f"--nproc-per-node={world}", "--standalone", EMULATED, plan, f"--data={self.text}", "--device=cuda",
                          "--steps=3", f"--metrics={out}", "--progress=off", *options,
                          env=harness.environment(FT_EMULATED_MACHINE=f"nccl={version}{machine}"))
        return [(row["loss"], row["grad_norm"]) for row in harness.metrics(out)], done.stdout

    def test_they_change_no_bit(self):
        for strategy, world, options in (("full_shard", 2, ()), ("full_shard", 4, ("--deterministic=on",)), ("zero1", 2, ("--cuda-graph=off",)),
                                         ("hybrid_shard", 4, ("--mesh=replica:2,shard:2",)), ("full_shard", 2, ("--attention=own",))):
            with self.subTest(strategy=strategy, world=world, options=options):
                plan = self.compiled(strategy, "--offload=optimizer", "--micro-steps=2")
                plain, said = self.trained(plan, world, NONE, *options)
                self.assertNotIn("can map", said)
                rows, said = self.trained(plan, world, ALL, *options)
                self.assertEqual(rows, plain)
                taken, more = map(int, re.search(r"took (\d+) bytes of memory that ranks of this host can map, (\d+) more", said).groups())
                arena = int(re.search(r"arena (\d+) bytes", said)[1])
                self.assertEqual((taken % PAGE, taken - more), (0, arena))
                late, _ = self.trained(plan, world, ALL, *options, machine=",late")
                self.assertEqual(late, plain)

    def test_they_are_left_out_where_they_would_hang_or_cannot_be(self):
        plan = self.compiled("full_shard")
        for world, version, machine, made in ((2, SEVERAL, "", False), (3, SEVERAL, "", True), (1, ALL, "", False), (2, ALL, ",unmappable", False)):
            with self.subTest(world=world, version=version, machine=machine):
                self.assertEqual("can map" in self.trained(plan, world, version, machine=machine)[1], made)

    def test_a_check_tries_collectives_in_them(self):
        done = self.check("ftrun", "--nproc-per-node=2", "--standalone", EMULATED, self.compiled("full_shard"), f"--data={self.text}",
                          "--device=cuda", "--check", env=harness.environment(FT_EMULATED_MACHINE=f"nccl={ALL}"))
        for collective in ("all_gather", "reduce_scatter", "all_reduce"):
            self.assertRegex(done.stdout, rf"ok +{collective} over shard +2 ranks, right results")

    def ranks(self, plan, world):
        port, metrics = free_port(), self.dir / "metrics.jsonl"
        metrics.unlink(missing_ok=True)
        ranks = []
        for rank in range(world):
            env = harness.environment(RANK=rank, WORLD_SIZE=world, LOCAL_RANK=rank, LOCAL_WORLD_SIZE=world, MASTER_ADDR="127.0.0.1",
                                      MASTER_PORT=port, OMP_NUM_THREADS=1, FT_EMULATED_MACHINE=f"nccl={ALL}")
            ranks.append(subprocess.Popen([EMULATED, plan, f"--data={self.text}", "--steps=1000000", "--progress=off", "--device=cuda",
                                           f"--metrics={metrics}"], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                          stderr=subprocess.PIPE, text=True))
        self.addCleanup(lambda: [rank.kill() for rank in ranks if rank.poll() is None])
        deadline = time.monotonic() + 120
        while not (metrics.exists() and metrics.read_text().count("\n") >= 2):
            self.assertLess(time.monotonic(), deadline, "training did not start")
            time.sleep(0.05)
        return ranks

    def test_a_peer_that_is_lost_in_a_gather_ends_the_process(self):
        plan, deadline = self.compiled("full_shard"), time.monotonic() + 600
        while time.monotonic() < deadline:  # until it was lost in a gather, and not in a sum or between two
            first, second = self.ranks(plan, 2)
            second.send_signal(signal.SIGSTOP)
            time.sleep(1)
            second.send_signal(signal.SIGKILL)
            begin = time.monotonic()
            _, stderr = first.communicate(timeout=60)
            self.assertLess(time.monotonic() - begin, 15)
            self.assertEqual(first.returncode, 75, stderr)
            self.assertRegex(stderr, r"\brank 1\b.*lost|lost.*\brank 1\b")
            second.communicate()
            if "a gather by copy engines goes on without end (emulated)" in stderr:
                return
        self.fail("no peer was ever lost in a gather")


if __name__ == "__main__":
    unittest.main()
