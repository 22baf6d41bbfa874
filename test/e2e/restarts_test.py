"""Ranks that end early, by a signal or because one was lost, and what launchers make of it: ftrun starts them again, and with
--resume=auto the run goes on by itself, to the bit. test/interop/elastic_test.py has the same with torchrun."""

import os
import signal
import subprocess
import time
import unittest

from checkpoint_files import resumed_after
from checkpoint_runs import CheckpointRuns, checkpoints
from harness import BIN, children, environment
from lost_rank_test import free_port, ranks_of
from watch_test import rank_of

# Steps of a run that sleeps most of the time: half a second each, so that a save that a signal asks for takes a second or so.
SLOW = "--emulate-link=1000,500000"


class Restarts(CheckpointRuns):
    def setUp(self):
        super().setUp()
        self.folder, self.metrics, self.weights = self.dir / "c", self.dir / "m.jsonl", self.dir / "w"
        self.model = self.tiny("gpt2", "--strategy=no_shard")

    def start(self, *command, **variables):
        """A process whose output goes to a file, which it has as `said`."""
        said = self.dir / f"said{len(list(self.dir.glob('said*')))}"
        with open(said, "w") as out:
            process = subprocess.Popen([str(word) for word in command], env=environment(OMP_NUM_THREADS=1, **variables), stdout=out,
                                       stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        process.said = said
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def ftexec(self, *options):
        return [BIN / "ftexec", self.model, f"--data={self.text}", "--progress=off", "--threads=1", f"--checkpoint-dir={self.folder}",
                f"--metrics={self.metrics}", *options]

    def by_hand(self, world, *options):
        """Ranks with no launcher that could help, or get in between."""
        port = free_port()
        return [self.start(*self.ftexec(*options), RANK=rank, WORLD_SIZE=world, LOCAL_RANK=rank, LOCAL_WORLD_SIZE=world,
                           MASTER_ADDR="127.0.0.1", MASTER_PORT=port) for rank in range(world)]

    def steps(self):
        return self.metrics.read_bytes().count(b"\n") if self.metrics.exists() else 0

    def wait_for(self, condition, what, seconds=90):
        deadline = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.01)

    def expected(self, world, *options):
        """Metrics and final weights of the run that nothing happens to."""
        out, weights = self.dir / "alone.jsonl", self.dir / "alone.w"
        self.go(self.model, world, *options, f"--metrics={out}", f"--save-weights={weights}")
        return self.rows(out), weights.read_bytes()

    def test_ftrun_starts_them_again(self):
        """Any of the ranks is lost, time and again: none of the steps that are left in the metrics and the weights shows it."""
        options = ("--steps=150", "--lr=0.01", "--lr-schedule=cosine", "--warmup-steps=10")
        rows, weights = self.expected(3, *options)
        launcher = self.start(BIN / "ftrun", "--nproc-per-node=3", "--standalone", "--max-restarts=3",
                              *self.ftexec(*options, "--save-every=7", "--keep=2", "--resume=auto", f"--save-weights={self.weights}",
                                           "--emulate-link=1000,10000"))
        for victim, at in ((2, 20), (0, 55), (1, 90)):
            self.wait_for(lambda: self.steps() >= at, f"no {at} steps\n{launcher.said.read_text()}")
            ranks = {rank_of(pid): pid for pid in ranks_of(launcher)}
            os.kill(ranks[victim], signal.SIGKILL)
            self.wait_for(lambda: not set(ranks.values()) & set(children(launcher.pid)), "the ranks did not end")
        self.assertEqual(launcher.wait(timeout=120), 0, launcher.said.read_text())
        said = launcher.said.read_text()
        self.assertEqual([f"restart {n} of 3" in said for n in (1, 2, 3)], [True] * 3, said)
        self.assertEqual(said.count("resumed from"), 3)
        self.assertNotIn("not as it was", said)
        self.assertEqual((self.rows(self.metrics), self.weights.read_bytes()), (rows, weights))

    def test_an_ftrun_on_each_of_two_nodes(self):
        """The other node's ranks notice, and its ftrun starts them again, too: they meet at the store of node 0 anew."""
        options = ("--steps=120", "--lr=0.01")
        rows, weights = self.expected(2, *options)
        port = free_port()
        nodes = [self.start(BIN / "ftrun", "--nnodes=2", f"--node-rank={node}", "--master-addr=127.0.0.1", f"--master-port={port}",
                            "--nproc-per-node=1", "--max-restarts=2",
                            *self.ftexec(*options, "--save-every=5", "--resume=auto", f"--save-weights={self.weights}",
                                         "--emulate-link=1000,10000")) for node in (0, 1)]
        for victim, at in ((1, 20), (0, 60)):
            self.wait_for(lambda: self.steps() >= at, f"no {at} steps")
            for pid in ranks_of(nodes[victim]):
                os.kill(pid, signal.SIGKILL)
            self.wait_for(lambda: "".join(node.said.read_text() for node in nodes).count("resumed from") == 1 + (at > 20),
                          "it did not go on")
        self.assertEqual([node.wait(timeout=120) for node in nodes], [0, 0], "".join(node.said.read_text() for node in nodes))
        self.assertEqual((self.rows(self.metrics), self.weights.read_bytes()), (rows, weights))

    def begun(self, world, *options):
        """Ranks at the beginning of one of their slow steps, as nearly as it can be seen; the one checkpoint is of step 2."""
        if not self.folder.exists():
            self.go(self.model, world, "--steps=2", f"--checkpoint-dir={self.folder}", f"--metrics={self.metrics}")
        done = self.steps()
        ranks = self.by_hand(world, "--steps=1000", "--resume=auto", SLOW, *options)
        self.wait_for(lambda: self.steps() != done, "it did not begin")
        return ranks

    def ended(self, ranks, seconds):
        """Their exit statuses, within this time; nothing was saved."""
        begin = time.monotonic()
        statuses = [rank.wait(timeout=30) for rank in ranks]
        self.assertLess(time.monotonic() - begin, seconds)
        self.assertEqual(sorted(checkpoints(self.folder)), [2])
        return statuses

    def test_a_folder_is_of_one_run_at_a_time(self):
        """As when a job is put into the queue again and its processes still live: what those write stays whole."""
        options = ("--steps=8", "--save-every=1")
        first = self.by_hand(2, *options, SLOW)
        self.wait_for(lambda: len(checkpoints(self.folder)) > 1, first[0].said)
        done = self.attempt(self.model, 2, *options, f"--checkpoint-dir={self.folder}", "--resume=auto", f"--metrics={self.dir}/second")
        self.assertEqual(done.returncode, 74, done.stderr)
        lines = [line for line in done.stderr.splitlines() if "ftexec: " in line]
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertRegex(lines[0], rf"^\[rank 0\] ftexec: another run \(process {first[0].pid} on \S+\) writes its checkpoints into "
                         rf"'{self.folder}'; wait for its end, or choose another folder$")
        self.assertFalse((self.dir / "second").exists())
        done = self.attempt(self.model, 1, f"--checkpoint-dir={self.folder}", "--check")
        self.assertEqual(done.returncode, 74, done.stdout)
        self.assertRegex(done.stdout, rf"FAIL  checkpoints +another run \(process {first[0].pid} on ")
        for rank in first:
            self.assertEqual(rank.wait(90), 0, rank.said.read_text())
        self.assertNotIn("was not written", first[0].said.read_text())
        self.assertEqual(sorted(checkpoints(self.folder)), list(range(1, 9)))
        self.assertEqual([p.name for p in self.folder.iterdir() if p.name.startswith(".")], [])

    def test_a_killed_run_holds_no_folder(self):
        first = self.by_hand(2, "--steps=20", "--save-every=1", SLOW)
        self.wait_for(lambda: len(checkpoints(self.folder)) > 1, first[0].said)
        for rank in first:
            rank.kill()
            rank.wait()
        self.assertTrue((self.folder / ".held-by-run").exists())
        done = self.go(self.model, 2, "--steps=6", f"--checkpoint-dir={self.folder}", "--resume=auto")
        self.assertIn("resumed from", done.stdout)
        self.assertEqual([p.name for p in self.folder.iterdir() if p.name.startswith(".")], [])

    def test_a_second_sigterm_does_not_wait(self):
        """To one rank or to all: it ends at once, and the checkpoint before is the newest one."""
        for told in ((0, 1), (0,), (1,)):
            with self.subTest(told=told):
                self.metrics.unlink(missing_ok=True)
                ranks = self.begun(2)
                for _ in range(2):
                    for rank in told:
                        ranks[rank].send_signal(signal.SIGTERM)
                    time.sleep(0.1)
                for rank, status in enumerate(self.ended(ranks, seconds=4)):
                    self.assertEqual(status, -signal.SIGTERM if rank in told else 75, ranks[rank].said.read_text())
        self.assertEqual(resumed_after(self.go(self.model, 2, f"--checkpoint-dir={self.folder}", "--resume=auto", "--steps=3").stdout), 2)

    def test_after_a_loss_nothing_is_saved(self):
        """Launchers send SIGTERM then, which is not taken for a wish."""
        ranks = self.begun(3)
        ranks[2].kill()
        ranks[2].wait()
        for rank in ranks[:2]:
            rank.send_signal(signal.SIGTERM)
        for rank, status in zip(ranks, self.ended(ranks[:2], seconds=6)):
            self.assertIn(status, (75, -signal.SIGTERM), rank.said.read_text())

    def test_the_grace_time_is_over(self):
        """Steps that take longer than --grace allows: said, ended by the signal, and the checkpoint before is the newest one."""
        ranks = self.begun(2, "--grace=0.2")
        ranks[1].send_signal(signal.SIGTERM)
        self.assertEqual(self.ended(ranks, seconds=4), [75, -signal.SIGTERM], ranks[1].said.read_text())
        self.assertIn("no checkpoint within 200ms of the signal 15 (Terminated): ended without one, the one before stays; allow more "
                      "with --grace", ranks[1].said.read_text())

    def test_one_rank_or_all_under_ftrun(self):
        """What watch_test.py does with SIGTERM and SIGUSR1, with steps that take their time: all end after one step, with 143."""
        for to_one, number in ((True, signal.SIGUSR1), (False, signal.SIGTERM)):
            with self.subTest(signal=number, to_one=to_one):
                launcher = self.start(BIN / "ftrun", "--nproc-per-node=2", "--standalone", "--max-restarts=5",
                                      *self.ftexec("--steps=1000", SLOW, "--resume=auto"))
                done = self.steps()
                self.wait_for(lambda: self.steps() >= done + 2, launcher.said.read_text())
                os.kill(ranks_of(launcher)[1] if to_one else launcher.pid, number)
                self.assertEqual(launcher.wait(timeout=30), 143, launcher.said.read_text())
                self.assertEqual(max(checkpoints(self.folder)), self.steps())
                self.assertNotIn("restart 1", launcher.said.read_text())


if __name__ == "__main__":
    unittest.main()
