"""A run that goes on from an older checkpoint, or begins anew, where there are later ones: those are never taken for its own."""

import shutil
import signal
import subprocess
import time
import unittest

from checkpoint_files import branch_of, read_checkpoints, resumed_after
from checkpoint_runs import CheckpointRuns, checkpoints, manifest, tensors
from harness import BIN, environment


class Branch(CheckpointRuns):
    def setUp(self):
        super().setUp()
        self.folder, self.metrics = self.dir / "c", self.dir / "m.jsonl"
        self.common = (f"--checkpoint-dir={self.folder}", f"--metrics={self.metrics}", "--shuffle=off")
        self.model = self.tiny("gpt2", "--strategy=full_shard")
        self.first = self.go(self.model, 2, *self.common, "--steps=8", "--save-every=2", "--lr=0.01")

    def run_on(self, *options, world=2):
        return self.go(self.model, world, *self.common, *options)

    def names(self, where="."):
        return sorted(path.name for path in (self.folder / where).iterdir())

    def steps(self, where="."):
        return sorted(checkpoints(self.folder / where))

    def said(self, done, words):
        return [line for line in done.stdout.splitlines() if words in line]

    def test_back_to_an_older_one(self):
        old = {step: tensors(path) for step, path in checkpoints(self.folder).items()}
        done = self.run_on(f"--resume={self.folder}/step-00000002", "--steps=6", "--save-every=1", "--lr=0.5")
        self.assertEqual(len(self.said(done, "has checkpoints that this run does not go on from, of 3 steps from 4 to 8; when its first "
                                             "one is written, they move aside")), 1, done.stdout)
        self.assertEqual(len(self.said(done, f"the checkpoints of 3 steps from 4 to 8, which this run does not go on from, are in "
                                             f"'{self.folder}/abandoned-1' now")), 1, done.stdout)
        self.assertEqual((self.steps(), self.steps("abandoned-1")), ([2, 3, 4, 5, 6], [4, 6, 8]))
        # What moved is what was there, the one of a step that was written again with it.
        for step, path in checkpoints(self.folder / "abandoned-1").items():
            self.assertEqual(tensors(path), old[step])
        self.assertNotEqual(tensors(checkpoints(self.folder)[4]), old[4])
        done = self.run_on("--resume=auto", "--steps=9")
        self.assertEqual((resumed_after(done.stdout), done.stderr), (6, ""))
        self.assertEqual(self.said(done, "does not go on from"), [])
        self.assertEqual([row["step"] for row in self.rows(self.metrics)], list(range(9)))
        # And back again, to what was left behind: none of the others is of that one's past.
        done = self.run_on(f"--resume={self.folder}/abandoned-1/step-00000008", "--steps=9")
        self.assertEqual(resumed_after(done.stdout), 8)
        self.assertEqual((self.steps(), self.steps("abandoned-2")), ([9], [2, 3, 4, 5, 6, 9]))
        self.assertEqual(self.steps("abandoned-1"), [4, 6, 8], "its own past stays where it was")

    def test_nothing_is_left_before_something_is_written(self):
        """Killed before its first checkpoint, or with nowhere to write it: as if the run had not been."""
        out = self.dir / "killed.jsonl"
        command = self.command(self.model, 1, f"--checkpoint-dir={self.folder}", f"--resume={self.folder}/step-00000002",
                               "--steps=100000", f"--metrics={out}", "--shuffle=off")
        process = subprocess.Popen([str(BIN / command[0]), *map(str, command[1:])], env=environment(), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 60
        while not out.exists() or out.read_bytes().count(b"\n") < 5:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        self.assertEqual(self.names(), [".held-by-run", *(f"step-0000000{step}" for step in (2, 4, 6, 8))])
        self.assertEqual(resumed_after(self.run_on("--resume=auto", "--steps=8").stdout), 8)

    def test_through_a_link_and_with_no_step_left(self):
        link = self.dir / "link"
        link.symlink_to(self.folder / "step-00000004")
        self.run_on(f"--resume={link}", "--steps=4")
        self.assertEqual((self.steps(), self.steps("abandoned-1")), ([2, 4], [6, 8]))
        self.assertEqual([name for name in self.names() if name.startswith(".")], [])
        self.assertEqual(resumed_after(self.run_on("--resume=auto", "--steps=5").stdout), 4)

    def test_old_ones_are_kept_as_the_run_says(self):
        """--keep counts what is of the run's past, and takes nothing of what was left."""
        self.run_on(f"--resume={self.folder}/step-00000004", "--steps=7", "--save-every=1", "--keep=2")
        self.assertEqual((self.steps(), self.steps("abandoned-1")), ([6, 7], [6, 8]))

    def test_from_elsewhere(self):
        """Whatever lies in the folder is of another run then, of earlier steps as well."""
        elsewhere = self.dir / "elsewhere"
        shutil.copytree(self.folder / "step-00000004", elsewhere / "step-00000004")
        self.run_on(f"--resume={elsewhere}/step-00000004", "--steps=5")
        self.assertEqual((self.steps(), self.steps("abandoned-1")), ([5], [2, 4, 6, 8]))
        self.assertEqual(self.names("../elsewhere"), ["step-00000004"])

    def test_begun_anew(self):
        done = self.run_on("--steps=3", "--seed=7")
        self.assertEqual(len(self.said(done, "of 4 steps from 2 to 8")), 2, done.stdout)
        self.assertEqual((self.steps(), self.steps("abandoned-1")), ([3], [2, 4, 6, 8]))
        self.assertEqual(resumed_after(self.run_on("--resume=auto", "--steps=4").stdout), 3)

    def test_passed_over_ones_are_left_too(self):
        """What auto could not read may be readable the next time: it is not of this run any more."""
        newest = self.folder / "step-00000008/model.safetensors"
        whole = newest.read_bytes()
        newest.write_bytes(whole[:-1])
        done = self.run_on("--resume=auto", "--steps=7")
        self.assertEqual((resumed_after(done.stdout), len(self.said(done, "of step 8"))), (6, 2), done.stdout)
        self.assertEqual((self.steps(), self.steps("abandoned-1")), ([2, 4, 6, 7], [8]))

    def test_where_moving_was_not_finished(self):
        """As if killed right after the first checkpoint of the branch: auto takes that, and what was left moves with the next one."""
        saved = self.dir / "saved"
        shutil.copytree(self.folder, saved)
        self.run_on(f"--resume={self.folder}/step-00000002", "--steps=3")
        for step in (4, 6, 8):
            shutil.copytree(saved / f"step-0000000{step}", self.folder / f"step-0000000{step}")
        shutil.rmtree(self.folder / "abandoned-1")
        self.assertEqual(branch_of(read_checkpoints(self.folder)[3]), 1)
        shown = self.check("ftckpt", "show", self.folder).stdout
        self.assertIn("step-00000003", shown)
        done = self.run_on("--resume=auto", "--steps=5")
        self.assertEqual(resumed_after(done.stdout), 3)
        self.assertEqual((self.steps(), self.steps("abandoned-1")), ([2, 3, 5], [4, 6, 8]))
        self.assertEqual(manifest(checkpoints(self.folder)[5])["branch"],
                         {"number": 2, "past": [{"number": 0, "steps": 2}, {"number": 1, "steps": 3}]})


if __name__ == "__main__":
    unittest.main()
