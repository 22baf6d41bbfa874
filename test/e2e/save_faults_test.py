"""--save-weights attacked at every call that it makes: killed, refused, cut off from power. The old file or the new one, always."""

import shutil
import unittest

from file_faults import FileFaults
from harness import BIN, EndToEnd, environment
from power_cut import PowerCut

NAME = "w.safetensors"
FULL = "the disk (or the quota) is full"


class SaveFaults(EndToEnd):
    def setUp(self):
        super().setUp()
        self.out = self.dir / "out"
        self.out.mkdir()
        self.faults = FileFaults(self.out, env=environment(OMP_NUM_THREADS=1), timeout=60)
        self.old, self.new = self.save(steps=0), self.save(steps=1)
        self.assertNotEqual(self.old, self.new)

    def command(self, steps=1, launcher=()):
        return [*launcher, BIN / "ftexec", self.plan("gpt2", "full_shard", "--layers=1"), f"--data={self.text}", f"--steps={steps}",
                "--progress=off", "--threads=1", f"--save-weights={self.out / NAME}"]

    def save(self, steps):
        self.check(*self.command(steps))
        return (self.out / NAME).read_bytes()

    def restore(self):
        """The old file, and nothing else."""
        shutil.rmtree(self.out)
        self.out.mkdir()
        (self.out / NAME).write_bytes(self.old)

    def left(self):
        """Which of the two files is there, and how many lie beside it: temporary ones alone."""
        others = [path.name for path in self.out.iterdir() if path.name != NAME]
        self.assertTrue(all(name.startswith(f"{NAME}.tmp.") for name in others), others)
        content = (self.out / NAME).read_bytes()
        return {self.old: "old", self.new: "new"}.get(content, f"{len(content)} bytes of something"), len(others)

    def calls(self):
        """Before step 0 the folder is tried; the rest comes at the end."""
        self.restore()
        calls = self.faults.count(self.command()).calls
        kinds = [call.kind for call in calls]
        self.assertEqual(kinds[:3] + kinds[-3:], ["open", "unlink", "open", "fsync", "rename", "fsync"])
        self.assertEqual(set(kinds[3:-3]), {"write"})
        self.assertGreater(len(kinds[3:-3]), 3)
        return calls

    def attack(self, call, do, when="before"):
        self.restore()
        done = self.faults.run(self.command(), at=call.number, do=do, when=when)
        self.assertEqual((done.fired.kind, done.fired.number), (call.kind, call.number))
        return done

    def test_killed_at_every_call(self):
        calls = self.calls()
        renamed = calls[-2].number
        for call in calls:
            for when in ("before", "after"):
                with self.subTest(call=str(call), when=when):
                    self.assertEqual(self.attack(call, "kill", when).returncode, -9)
                    # The calls that were made: all after the renaming find the new file; a temporary lies there from its
                    # making until its removal or renaming.
                    made = call.number - (when == "before")
                    self.assertEqual(self.left(), ("new" if made >= renamed else "old", 0 if made in (0, 2) or made >= renamed else 1))

    def test_what_a_killed_process_left_is_in_nobodys_way(self):
        self.assertEqual(self.attack(self.calls()[-2], "kill").returncode, -9)
        self.assertEqual(self.left(), ("old", 1))
        self.check(*self.command())
        self.assertEqual(self.left(), ("new", 1))

    def test_refused_once_at_every_call(self):
        """One line, status 74, the old file and nothing beside it."""
        calls = self.calls()
        for do, words in (("enospc", FULL), ("eio", "Input/output error"), ("erofs", "Read-only file system")):
            for call in calls:
                with self.subTest(do=do, call=str(call)):
                    done = self.attack(call, do)
                    if call.kind == "unlink":  # the trial's temporary stays, which is no reason not to train
                        self.assertEqual((done.returncode, done.stderr, self.left()), (0, "", ("new", 1)))
                        continue
                    self.assertEqual((done.returncode, len(done.stderr.splitlines())), (74, 1), done.stderr)
                    self.assertIn(words, done.stderr)
                    self.assertIn(str(self.out / NAME), done.stderr)
                    # The new file is whole and in place when its folder cannot be synced, and may be gone after a power cut.
                    self.assertEqual(self.left(), ("new" if call is calls[-1] else "old", 0))

    def test_a_disk_that_is_full_from_a_call_on(self):
        """Room is missing for good, and temporaries can still be removed."""
        calls = self.calls()
        for call in calls:
            with self.subTest(call=str(call)):
                done = self.attack(call, "full")
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (74, 1), done.stderr)
                self.assertIn(FULL, done.stderr)
                self.assertEqual(self.left(), ("new" if call is calls[-1] else "old", 0))

    def test_a_disk_or_folder_that_stays_broken(self):
        """Nothing can be removed any more, so a temporary may stay; the old file does, too."""
        calls = self.calls()
        for do in ("eio_sticky", "readonly"):
            for call in (calls[0], calls[2], calls[3], calls[-4], calls[-3], calls[-2]):
                with self.subTest(do=do, call=str(call)):
                    done = self.attack(call, do)
                    self.assertEqual((done.returncode, len(done.stderr.splitlines())), (74, 1), done.stderr)
                    self.assertEqual(self.left(), ("old", 0 if call.kind == "open" else 1))

    def test_short_writes(self):
        calls = self.calls()
        for call in calls:
            if call.kind == "write":
                self.assertEqual(self.attack(call, "short").returncode, 0)
                self.assertEqual(self.left(), ("new", 0))

    def test_all_ranks_are_killed(self):
        launcher = [BIN / "ftrun", "--standalone", "--nproc-per-node=2"]
        self.restore()
        writes = self.faults.count(self.command(launcher=launcher)).writes
        two = (self.out / NAME).read_bytes()
        self.restore()
        self.assertEqual(self.faults.count(self.command(launcher=launcher), rank=1).calls, [])
        self.restore()
        done = self.faults.run(self.command(launcher=launcher), at=writes[1], do="kill_all")
        self.assertEqual((done.fired.rank, done.fired.kind, self.left()), (0, "write", ("old", 1)))
        self.assertNotEqual(done.returncode, 0)
        self.check(*self.command(launcher=launcher))
        self.assertEqual((self.out / NAME).read_bytes(), two)

    def test_power_cuts(self):
        """Whatever no fsync covered is lost, torn or out of order; and once the run has ended, the new file is on disk."""
        self.restore()
        record = self.faults.record(self.command())
        self.assertEqual(record.done.returncode, 0)

        def look(state):
            file = state.tree.get(NAME)
            if file not in ((self.new,) if state.done else (self.old, self.new)):
                return "the file is neither the old nor the new one" if file not in (self.old, self.new) else "the new file is lost"
            return None

        for ordered_names in (False, True):
            count, wrong = PowerCut(record, ordered_names).check(look, seed=12)
            self.assertEqual(wrong, [])
            self.assertGreater(count, 100)


if __name__ == "__main__":
    unittest.main()
