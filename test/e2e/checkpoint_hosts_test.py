"""Checkpoints of ranks on two hosts that share a folder: two names for this machine, so that its ranks do not know that it is one."""

import json
import subprocess
import unittest

from harness import BIN, EndToEnd, environment
from lost_rank_test import free_port

HOSTS = ("east", "east", "west", "west")


def can_rename():
    return subprocess.run(["unshare", "--uts", "sh", "-c", "hostname east"], capture_output=True).returncode == 0


@unittest.skipUnless(can_rename(), "skipped: cannot give this machine another name")
class CheckpointHosts(EndToEnd):
    def train(self, name, hosts, *options):
        """A run of 3 steps that ends with a checkpoint: its folder."""
        port, folder = free_port(), self.dir / name
        ranks = []
        for rank, host in enumerate(hosts):
            env = environment(RANK=rank, WORLD_SIZE=len(hosts), MASTER_ADDR="127.0.0.1", MASTER_PORT=port, OMP_NUM_THREADS=1)
            command = ["unshare", "--uts", "sh", "-c", f'hostname {host}; exec "$0" "$@"', BIN / "ftexec", self.plan("gpt2", "full_shard"),
                       f"--data={self.text}", "--steps=3", "--progress=off", f"--checkpoint-dir={folder}", *options]
            ranks.append(subprocess.Popen(command, env=env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE))
        self.addCleanup(lambda: [rank.kill() for rank in ranks if rank.poll() is None])
        for rank in ranks:
            _, said = rank.communicate(timeout=120)
            self.assertEqual((rank.returncode, said), (0, ""))
        (checkpoint,) = folder.glob("step-*")
        return checkpoint

    def test_whole_tensors_are_the_same_wherever_ranks_are(self):
        one = self.train("one", ["east"] * 4)
        for number, hosts in enumerate((HOSTS, ("east", "west", "east", "west"), ("a", "b", "c", "d"))):
            for saving in ("on", "off"):
                with self.subTest(hosts=hosts, async_save=saving):
                    many = self.train(f"many-{number}-{saving}", hosts, "--state-dict-type=full", f"--async-save={saving}")
                    self.check("ftckpt", "verify", many)
                    for name in ("model.safetensors", "optimizer.safetensors", "config.json"):
                        self.assertEqual((many / name).read_bytes(), (one / name).read_bytes(), name)

    def test_several_hosts_write_a_file_for_each_rank_unless_told_otherwise(self):
        self.assertEqual(json.loads((self.train("many", HOSTS) / "manifest.json").read_text())["type"], "sharded")
        self.assertEqual(json.loads((self.train("one", ["east"] * 4) / "manifest.json").read_text())["type"], "full")


if __name__ == "__main__":
    unittest.main()
