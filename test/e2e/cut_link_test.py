"""Two hosts whose network is cut, on this machine: namespaces joined by a virtual link."""

import os
import re
import subprocess
import time
import unittest

from harness import BIN, EndToEnd, environment, metrics
from lost_rank_test import free_port

NAMESPACES = [f"ft-{os.getpid()}-{host}" for host in "ab"]
LINKS = [f"ft{os.getpid() % 100000}{host}" for host in "ab"]


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True)


def remove():
    for namespace in NAMESPACES:
        ip("netns", "del", namespace)


def make():
    """Whether two hosts could be made: 10.77.0.1 and 10.77.0.2."""
    done = [ip("netns", "add", namespace) for namespace in NAMESPACES]
    done.append(ip("link", "add", LINKS[0], "netns", NAMESPACES[0], "type", "veth", "peer", "name", LINKS[1], "netns", NAMESPACES[1]))
    for i, (namespace, link) in enumerate(zip(NAMESPACES, LINKS)):
        done += [ip("-n", namespace, "addr", "add", f"10.77.0.{i + 1}/24", "dev", link), ip("-n", namespace, "link", "set", link, "up"),
                 ip("-n", namespace, "link", "set", "lo", "up")]
    return all(step.returncode == 0 for step in done)


class CutLink(EndToEnd):
    def test_a_link_that_is_cut(self):
        self.addCleanup(remove)
        if not make():
            self.skipTest("skipped: cannot make network namespaces")
        out, ranks = self.dir / "m.jsonl", []
        for rank in (0, 1):
            env = environment(RANK=rank, WORLD_SIZE=2, MASTER_ADDR="10.77.0.1", MASTER_PORT=29500, OMP_NUM_THREADS=1)
            command = ["ip", "netns", "exec", NAMESPACES[rank], "unshare", "--uts", "sh", "-c", f'hostname host{rank}; exec "$0" "$@"']
            ranks.append(subprocess.Popen([*command, BIN / "ftexec", self.plan("gpt2", "full_shard"), f"--data={self.text}",
                                           "--steps=1000000", f"--metrics={out}", "--progress=off"], env=env, text=True,
                                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        self.addCleanup(lambda: [rank.kill() for rank in ranks if rank.poll() is None])
        deadline = time.monotonic() + 60
        while not (out.exists() and len(metrics(out)) >= 3):
            self.assertLess(time.monotonic(), deadline, "training did not start")
            self.assertEqual([rank.poll() for rank in ranks], [None, None])
            time.sleep(0.1)
        self.assertEqual(ip("-n", NAMESPACES[1], "link", "set", LINKS[1], "down").returncode, 0)
        for rank, process in enumerate(ranks):
            header, said = process.communicate(timeout=90)
            self.assertEqual((process.returncode, len(said.splitlines())), (75, 1), said)
            self.assertIn(f"rank {1 - rank} was lost (nothing is heard from its host any more, pid ", said)
            self.assertIn(f" on host{1 - rank}: ", said)
            self.assertIn("its process may still run", said)
            self.assertNotIn("without a word", said)


class OneRankTwice(EndToEnd):
    def start(self, rank, port, *options):
        env = environment(RANK=rank, WORLD_SIZE=2, LOCAL_RANK=rank, LOCAL_WORLD_SIZE=2, MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
                          OMP_NUM_THREADS=1)
        process = subprocess.Popen([BIN / "ftexec", self.plan("gpt2", "full_shard"), f"--data={self.text}", "--progress=off",
                                    "--timeout=30", *options], env=env, text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def ends(self, process, status, *words):
        _, said = process.communicate(timeout=60)
        self.assertEqual((process.returncode, len(said.splitlines())), (status, 1 if words else 0), said)
        for word in words:
            self.assertRegex(said, word)
        return said

    def test_before_all_have_met(self):
        port = free_port()
        twins = [self.start(1, port, "--steps=1000000"), self.start(1, port, "--steps=1000000")]
        self.start(0, port, "--steps=1000000")
        # Whoever took the place first may train with rank 0 before the other is heard.
        deadline = time.monotonic() + 60
        while all(twin.poll() is None for twin in twins):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        refused = next(twin for twin in twins if twin.poll() is not None)
        said = self.ends(refused, 65, r"two processes claim rank 1: pid \d+ on .*, and pid \d+ on ")
        self.assertEqual({int(pid) for pid in re.findall(r"pid (\d+)", said)}, {twin.pid for twin in twins})

    def test_after_they_have_met(self):
        port, out = free_port(), self.dir / "m.jsonl"
        ranks = [self.start(0, port, "--steps=1000000", f"--metrics={out}"), self.start(1, port, "--steps=1000000")]
        while not (out.exists() and len(out.read_bytes().splitlines()) >= 2):
            self.assertEqual([rank.poll() for rank in ranks], [None, None])
            time.sleep(0.05)
        begin = time.monotonic()
        late = self.start(1, port, "--steps=1000000")
        self.ends(late, 65, rf"two processes claim rank 1: pid {ranks[1].pid} on .*, and pid {late.pid} on .*give every process its own RANK")
        self.assertLess(time.monotonic() - begin, 10)
        zero = self.start(0, port, "--steps=1000000")
        self.ends(zero, 65, "another process RANK=0")
        self.assertEqual([rank.poll() for rank in ranks], [None, None])  # and they go on


if __name__ == "__main__":
    unittest.main()
