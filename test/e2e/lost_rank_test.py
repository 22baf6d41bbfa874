"""A rank that dies in mid-step: every other rank ends within 5 s and names it; nothing is left behind."""

import contextlib
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import time
import unittest

from harness import BIN, EndToEnd, children, environment, left_in_shared_memory


def free_port():
    """Below those that the system gives to whoever connects, or another program could have it before ours binds it."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def ranks_of(launcher):
    """Process ids of the ftexec ranks that a running ftrun has started."""
    return [pid for pid, name in children(launcher.pid).items() if name == "ftexec"]


class LostRank(EndToEnd):
    def wait_for_steps(self, metrics, count):
        deadline = time.monotonic() + 60
        while not (metrics.exists() and metrics.read_text().count("\n") >= count):
            self.assertLess(time.monotonic(), deadline, "training did not start")
            time.sleep(0.05)

    def start(self, world, *options):
        """Ranks started by hand, with no launcher around that could help; waits until training is under way."""
        plan, port = self.plan("gpt2", "full_shard"), free_port()
        metrics = self.dir / "metrics.jsonl"
        ranks = []
        for rank in range(world):
            env = environment(RANK=rank, WORLD_SIZE=world, LOCAL_RANK=rank, LOCAL_WORLD_SIZE=world, MASTER_ADDR="127.0.0.1",
                              MASTER_PORT=port, OMP_NUM_THREADS=1)
            ranks.append(subprocess.Popen([BIN / "ftexec", plan, f"--data={self.text}", "--steps=1000000", "--progress=off",
                                           f"--metrics={metrics}", *options], env=env, stdin=subprocess.DEVNULL,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        self.addCleanup(lambda: [rank.kill() for rank in ranks if rank.poll() is None])
        self.wait_for_steps(metrics, 4)
        return ranks

    def test_every_survivor_names_the_lost_rank(self):
        for backend in ("shm", "gloo"):
            for victim in (0, 1, 2):
                with self.subTest(backend=backend, victim=victim):
                    (self.dir / "metrics.jsonl").unlink(missing_ok=True)
                    ranks = self.start(3, f"--comm-backend={backend}")
                    ranks[victim].send_signal(signal.SIGKILL)
                    begin = time.monotonic()
                    for rank, process in enumerate(ranks):
                        _, stderr = process.communicate(timeout=20)
                        if rank != victim:
                            self.assertLess(time.monotonic() - begin, 5)
                            self.assertEqual(process.returncode, 75, stderr)
                            self.assertRegex(stderr, rf"\brank {victim}\b.*lost|lost.*\brank {victim}\b")
                    self.assertEqual(left_in_shared_memory(), [])

    def test_ftrun_ends_everyone_and_takes_the_status(self):
        plan = self.plan("gpt2", "full_shard")
        launcher = subprocess.Popen([BIN / "ftrun", "--nproc-per-node=3", "--standalone", BIN / "ftexec", plan,
                                     f"--data={self.text}", "--steps=1000000", "--progress=off",
                                     f"--metrics={self.dir}/metrics.jsonl"], env=environment(), stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(launcher.kill)
        self.wait_for_steps(self.dir / "metrics.jsonl", 1)
        ranks = ranks_of(launcher)
        self.assertEqual(len(ranks), 3)
        os.kill(ranks[1], signal.SIGKILL)
        output, _ = launcher.communicate(timeout=15)
        self.assertIn(launcher.returncode, (128 + signal.SIGKILL, -signal.SIGKILL), output)
        self.assertRegex(output, r"rank \d")
        self.assertTrue(re.search(r"lost", output), output)
        for rank in ranks:
            self.assertFalse(pathlib.Path(f"/proc/{rank}").exists())

    def test_ftrun_forwards_signals(self):
        plan = self.plan("gpt2", "full_shard")
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number):
                launcher = subprocess.Popen([BIN / "ftrun", "--nproc-per-node=2", "--standalone", BIN / "ftexec", plan,
                                             f"--data={self.text}", "--steps=1000000", "--progress=off",
                                             f"--metrics={self.dir}/{number}.jsonl"], env=environment(),
                                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                self.addCleanup(launcher.kill)
                self.wait_for_steps(self.dir / f"{number}.jsonl", 1)
                ranks = ranks_of(launcher)
                self.assertEqual(len(ranks), 2)
                launcher.send_signal(number)
                launcher.communicate(timeout=15)
                self.assertIn(launcher.returncode, (-number, 128 + number))
                for rank in ranks:
                    self.assertFalse(pathlib.Path(f"/proc/{rank}").exists())


if __name__ == "__main__":
    unittest.main()
