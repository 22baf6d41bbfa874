"""What keeps ranks that have met from beginning is one line, whoever finds it; each has its exit status and its error file."""

import json
import subprocess
import unittest

from checkpoint_runs import CheckpointRuns, checkpoints
from harness import BIN, environment
from lost_rank_test import free_port

WORLD = 3


class Refusal(CheckpointRuns):
    def setUp(self):
        super().setUp()
        self.model, self.folder = self.tiny("gpt2", "--strategy=full_shard"), self.dir / "c"
        self.go(self.model, WORLD, "--steps=2", f"--checkpoint-dir={self.folder}")
        self.checkpoint = checkpoints(self.folder)[2]

    def start(self, *options, of_rank=lambda rank: ()):
        """Ranks started by hand; returns for each its status, what it said on stderr and its error file."""
        port, ranks, found = free_port(), [], []
        for rank in range(WORLD):
            env = environment(RANK=rank, WORLD_SIZE=WORLD, LOCAL_RANK=rank, LOCAL_WORLD_SIZE=WORLD, MASTER_ADDR="127.0.0.1",
                              MASTER_PORT=port, OMP_NUM_THREADS=1, TORCHELASTIC_ERROR_FILE=self.dir / f"error{rank}.json")
            command = [BIN / "ftexec", self.model, "--progress=off", "--steps=4", *options, *of_rank(rank)]
            ranks.append(subprocess.Popen([str(word) for word in command], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                          stderr=subprocess.PIPE, text=True))
        for rank, process in enumerate(ranks):
            self.addCleanup(process.kill)
            _, said = process.communicate(timeout=60)
            error = json.loads((self.dir / f"error{rank}.json").read_text())["message"]["message"]
            found.append((process.returncode, said.splitlines(), error))
        return found

    def assert_one_line(self, found, status, words):
        self.assertEqual([(code, len(lines)) for code, lines, _ in found], [(status, 1)] + [(status, 0)] * (WORLD - 1), found)
        (line,) = found[0][1]
        self.assertTrue(line.startswith(f"ftexec: {words}"), line)
        for _, _, error in found:
            self.assertTrue(error.endswith(line.removeprefix("ftexec: ")), error)

    def test_what_all_find(self):
        other = self.dir / "other.txt"
        other.write_bytes(self.text.read_bytes()[:3000])
        for options, words in (([f"--data={other}", f"--resume={self.checkpoint}"], "--data is not what the run had until here"),
                               ([f"--data={self.text}", f"--resume={self.checkpoint}", "--min-lr=5"], "min_lr is 5"),
                               ([f"--data={self.text}", f"--checkpoint-dir={self.dir}/new", "--resume=auto", "--min-lr=5"], "min_lr is 5")):
            with self.subTest(options=options):
                self.assert_one_line(self.start(*options), 65, words)

    def test_what_is_agreed_on(self):
        wrong = self.checkpoint / "model.safetensors"
        wrong.write_bytes(wrong.read_bytes()[:-4])
        self.assert_one_line(self.start(f"--data={self.text}", f"--resume={self.checkpoint}"), 65, f"'{wrong}'")

    def test_what_one_rank_finds(self):
        """Here its folder is not that of the others."""
        found = self.start(f"--data={self.text}", "--resume=auto", of_rank=lambda rank: (f"--checkpoint-dir={self.dir}/c{rank // 2}",))
        self.assert_one_line(found, 65, f"--checkpoint-dir={self.dir}/c0: rank 2 does not see what rank 0 wrote there")


if __name__ == "__main__":
    unittest.main()
