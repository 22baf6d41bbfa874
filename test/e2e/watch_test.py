"""What the watch over the ranks tells: who is slow. And signals that wish for a checkpoint, where none is written."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
import unittest

from harness import BIN, EndToEnd, children, environment, metrics
from lost_rank_test import ranks_of

FIELDS = ("compute_step", "compute_ms_min", "compute_ms_mean", "compute_ms_max", "slowest_rank")


def rank_of(pid):
    variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return next(int(variable[5:]) for variable in variables if variable.startswith(b"RANK="))


class Pulses(threading.Thread):
    """Stops a process most of the time: whatever else the machine does, it computes at a fraction of its speed."""

    def __init__(self, pid, stopped=0.12, running=0.02):
        super().__init__(daemon=True)
        self.pid, self.over, self.stopped, self.running = pid, threading.Event(), stopped, running

    def run(self):
        with contextlib.suppress(ProcessLookupError):  # it has ended
            while not self.over.is_set():
                os.kill(self.pid, signal.SIGSTOP)
                self.over.wait(self.stopped)
                os.kill(self.pid, signal.SIGCONT)
                self.over.wait(self.running)

    def end(self):
        self.over.set()
        self.join()


class Watch(EndToEnd):
    def start(self, world, plan, *options):
        """A run without end under ftrun, under way; its output goes to files."""
        out = self.dir / "metrics.jsonl"
        self.out, self.err = self.dir / "out", self.dir / "err"
        with open(self.out, "w") as stdout, open(self.err, "w") as stderr:
            launcher = subprocess.Popen([BIN / "ftrun", f"--nproc-per-node={world}", "--standalone", BIN / "ftexec", plan,
                                         f"--data={self.text}", "--steps=1000000", "--progress=off", f"--metrics={out}", *options],
                                        env=environment(OMP_NUM_THREADS=1), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr)
        self.addCleanup(launcher.wait)
        self.addCleanup(launcher.kill)
        self.wait_for(lambda: len(self.steps()) >= 2)
        return launcher

    def steps(self):
        path = self.dir / "metrics.jsonl"
        return path.read_text().splitlines() if path.exists() else []

    def wait_for(self, condition, seconds=120):
        deadline = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), deadline, self.err.read_text() + self.out.read_text())
            time.sleep(0.02)

    def test_metrics_have_the_ranks_compute_times(self):
        rows = self.train(self.plan("gpt2", "full_shard"), 3, steps=12)
        known = [row for row in rows if "compute_step" in row]
        self.assertGreaterEqual(len(known), 8)
        for row in known:
            # Of the step before, mostly; the figures of the others are under way when the line is written.
            self.assertLessEqual(row["compute_step"], row["step"])
            self.assertGreaterEqual(row["compute_step"], row["step"] - 3)
            self.assertLess(0, row["compute_ms_min"])
            self.assertLessEqual(row["compute_ms_min"], row["compute_ms_mean"])
            self.assertLessEqual(row["compute_ms_mean"], row["compute_ms_max"])
            self.assertIn(row["slowest_rank"], (0, 1, 2))
        for row in self.train(self.plan("gpt2", "full_shard"), 1, steps=3):
            self.assertEqual([field for field in FIELDS if field in row], [])

    def test_a_slow_rank_is_named_once(self):
        # A step computes for longer than the pulses let it run at a time: each is interrupted while it computes, not only while it waits.
        launcher = self.start(2, self.plan("gpt2", "full_shard", "--batch=160"))
        ranks = {rank_of(pid): pid for pid in ranks_of(launcher)}
        pulses = Pulses(ranks[1])
        pulses.start()
        self.addCleanup(pulses.end)
        self.wait_for(lambda: "is slow" in self.err.read_text(), 200)
        done = len(self.steps())
        self.wait_for(lambda: len(self.steps()) >= done + 12, 200)
        pulses.end()
        launcher.send_signal(signal.SIGTERM)
        self.assertEqual(launcher.wait(timeout=40), -signal.SIGTERM)
        lines = [line for line in self.err.read_text().splitlines() if "is slow" in line]
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(lines[0], r"^\[rank 0\] ftexec: rank 1 is slow: it computed [\d.]+ ms a step in steps \d+ to \d+, [\d.]+ "
                                   r"times the median of the ranks \([\d.]+ ms\), and the others wait for it; look at its host$")
        first, last = map(int, re.search(r"steps (\d+) to (\d+)", lines[0]).groups())
        self.assertGreaterEqual(last - first + 1, 10)
        rows = [row for row in metrics(self.dir / "metrics.jsonl") if first <= row.get("compute_step", -1) + 1 <= last]
        self.assertGreater(len(rows), 5)
        for row in rows:
            self.assertEqual(row["slowest_rank"], 1)
            self.assertGreater(row["compute_ms_max"], 1.5 * row["compute_ms_min"])

    def test_signals_without_a_checkpoint_folder(self):
        """SIGUSR2 is ignored in a line, by all ranks, as ftrun passes it on; SIGUSR1 ends the run like any other signal."""
        launcher = self.start(2, self.plan("gpt2", "full_shard"))
        launcher.send_signal(signal.SIGUSR2)
        self.wait_for(lambda: self.err.read_text().count("SIGUSR2 is ignored") == 2)
        for rank in (0, 1):
            self.assertIn(f"[rank {rank}] ftexec: rank {rank}: SIGUSR2 is ignored: it wishes for a checkpoint", self.err.read_text())
        done = len(self.steps())
        self.wait_for(lambda: len(self.steps()) > done + 3)
        self.assertEqual(sorted(children(launcher.pid).values()).count("ftexec"), 2)
        launcher.send_signal(signal.SIGUSR1)
        self.assertEqual(launcher.wait(timeout=30), 128 + signal.SIGUSR1)
        self.assertIn("was killed by signal 10", self.err.read_text())

    def checkpoints(self):
        return sorted(int(path.parent.name.split("-")[1]) for path in (self.dir / "saved").glob("step-*/manifest.json"))

    def test_signals_with_a_checkpoint_folder(self):
        """SIGUSR2 saves and goes on; SIGTERM and SIGUSR1, to one rank or to all, save after one step and end with 143."""
        plan, options = self.plan("gpt2", "full_shard"), (f"--checkpoint-dir={self.dir / 'saved'}", "--resume=auto")
        reached = 0
        for to_one, number in ((False, signal.SIGTERM), (True, signal.SIGTERM), (False, signal.SIGUSR1), (True, signal.SIGUSR1)):
            with self.subTest(signal=number, to_one=to_one):
                launcher = self.start(2, plan, *options)
                self.wait_for(lambda: len(self.steps()) > reached + 3)
                ranks = {rank_of(pid): pid for pid in ranks_of(launcher)}
                before = self.checkpoints()
                os.kill(ranks[1], signal.SIGUSR2)
                self.wait_for(lambda: len(self.checkpoints()) > len(before))
                self.assertIsNone(launcher.poll())
                done = len(self.steps())
                self.wait_for(lambda: len(self.steps()) > done + 1)
                os.kill(ranks[1] if to_one else launcher.pid, number)
                self.assertEqual(launcher.wait(timeout=60), 143, self.err.read_text())
                self.assertIn("ftrun: all ranks have saved and ended, as a signal asked", self.err.read_text())
                self.assertEqual(self.err.read_text().count("\n"), 1, self.err.read_text())
                rows = metrics(self.dir / "metrics.jsonl")
                reached = self.checkpoints()[-1]
                self.assertEqual([row["step"] for row in rows if "loss" in row], list(range(reached)))

    def test_one_process_alone_saves_and_ends(self):
        for number, status in ((signal.SIGTERM, 143), (signal.SIGUSR1, 143), (signal.SIGINT, -signal.SIGINT)):
            out = self.dir / "metrics.jsonl"
            out.unlink(missing_ok=True)
            saved = self.dir / f"saved-{number}"
            process = subprocess.Popen([BIN / "ftexec", self.plan("gpt2", "full_shard"), f"--data={self.text}", "--steps=1000000",
                                        "--progress=off", f"--metrics={out}", f"--checkpoint-dir={saved}", "--async-save=off"],
                                       env=environment(OMP_NUM_THREADS=1), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True)
            self.addCleanup(process.kill)
            deadline = time.monotonic() + 60
            while len(self.steps()) < 3:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.02)
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
            self.assertEqual((process.returncode, errors), (status, ""))
            self.assertEqual(len(list(saved.glob("step-*/manifest.json"))), 1 if status == 143 else 0)

    def test_one_rank_that_gets_sigusr1_is_the_cause(self):
        launcher = self.start(3, self.plan("gpt2", "full_shard"))
        ranks = {rank_of(pid): pid for pid in ranks_of(launcher)}
        os.kill(ranks[2], signal.SIGUSR1)
        self.assertEqual(launcher.wait(timeout=30), 128 + signal.SIGUSR1)
        text = self.err.read_text()
        self.assertRegex(text, r"ftrun: rank 2 \(pid \d+\) was killed by signal 10")
        self.assertIn("rank 2 failed: ended by signal User defined signal 1", text)


if __name__ == "__main__":
    unittest.main()
