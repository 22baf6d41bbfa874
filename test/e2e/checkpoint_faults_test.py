"""Checkpoints attacked at every call that a save makes: killed, refused, cut off from power.

FT_EVERY_FAULT=1 tries all calls where otherwise some are drawn; it takes long."""

import os
import random
import shutil
import unittest

from checkpoint_files import announced, checkpoints_of, complaint, newest_whole, read_checkpoints, resumed_after
from file_faults import FileFaults
from harness import BIN, EndToEnd, environment
from power_cut import PowerCut
from tree import write_tree

EVERYTHING = os.environ.get("FT_EVERY_FAULT", "0") != "0"
FULL = "the disk (or the quota) is full"
STEPS = 3


class CheckpointFaults(EndToEnd):
    def setUp(self):
        super().setUp()
        self.out = self.dir / "out"
        self.out.mkdir()
        self.folder = self.out / "checkpoints"
        self.weights = self.dir / "weights.safetensors"
        self.faults = FileFaults(self.out, env=environment(OMP_NUM_THREADS=1), timeout=120)

    def command(self, *options, world=1, resume="auto", steps=STEPS):
        launcher = [BIN / "ftrun", "--standalone", f"--nproc-per-node={world}"] if world > 1 else []
        return [*launcher, BIN / "ftexec", self.plan("gpt2", "full_shard", "--layers=1"), f"--data={self.text}", f"--steps={steps}",
                "--save-every=1", f"--checkpoint-dir={self.folder}", f"--resume={resume}", "--progress=off", "--threads=1",
                f"--save-weights={self.weights}", *options]

    def empty(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def restore(self, saved):
        self.empty()
        if saved is not None:
            shutil.copytree(saved, self.folder)

    def undisturbed(self, world=1):
        """The final weights."""
        self.empty()
        self.check(*self.command(world=world), env=environment(OMP_NUM_THREADS=1))
        self.assertEqual(sorted(read_checkpoints(self.folder)), list(range(1, STEPS + 1)))
        return self.weights.read_bytes()

    def check_whole(self, committed):
        """Whatever has a checkpoint's name is one, and the newest is not older than what was promised. Returns its step."""
        found = read_checkpoints(self.folder)
        for step, files in found.items():
            self.assertIsNone(complaint(files), f"step {step}")
        newest = newest_whole(found)[1]
        self.assertGreaterEqual(newest, committed)
        return newest

    def check_goes_on(self, newest, final, *options, world=1):
        """A run after the fault begins where the newest checkpoint is, and ends where an undisturbed one does."""
        self.weights.unlink(missing_ok=True)
        done = self.check(*self.command(*options, world=world), env=environment(OMP_NUM_THREADS=1))
        self.assertEqual((resumed_after(done.stdout), done.stderr), (newest, ""))
        self.assertEqual(self.weights.read_bytes(), final)
        self.assertEqual([p.name for p in self.folder.iterdir() if p.name.startswith(".")], [])
        self.assertEqual(self.check_whole(STEPS), STEPS)

    def killed(self, call, final, saved, *options, rank=0, do="kill", when="before", world=1, **run_options):
        with self.subTest(call=str(call), rank=rank, do=do, when=when):
            self.restore(saved)
            done = self.faults.run(self.command(*options, world=world, **run_options), at=call.number, do=do, when=when, rank=rank)
            self.assertEqual((done.fired.kind, done.fired.number), (call.kind, call.number))
            self.assertNotEqual(done.returncode, 0)
            newest = self.check_whole(max(announced(done.stdout), default=0))
            self.check_goes_on(newest, final, *options, world=world)

    def sweep(self, calls, final, saved, *options, ends=True, **how):
        """Before each of the calls, which is after the one before it; and after those that change names."""
        for call in calls:
            self.killed(call, final, saved, *options, **how)
            if EVERYTHING or (ends and call.kind in ("rename", "mkdir", "fsync") and call.number % 3 == 0):
                self.killed(call, final, saved, *options, when="after", **how)

    @staticmethod
    def draw(calls, every):
        return calls if EVERYTHING else calls[::every]

    def calls(self, *options, saved=None, rank=0, **how):
        self.restore(saved)
        return self.faults.count(self.command(*options, **how), rank=rank).calls

    def second_save(self, calls):
        """The calls from the making of the second staged folder up to that of the third."""
        staged = [i for i, call in enumerate(calls) if call.kind == "mkdir" and ".staged-" in call.path]
        self.assertEqual(len(staged), STEPS)
        return calls[staged[1]:staged[2]]

    def test_killed_at_every_call_with_deletion(self):
        """One rank: a save in full, the removal of the one before with it."""
        final = self.undisturbed()
        calls = self.calls("--keep=1")
        second = self.second_save(calls)
        kinds = {call.kind for call in second}
        self.assertTrue({"mkdir", "open", "fallocate", "truncate", "pwrite", "fsync", "rename", "unlink", "rmdir"} <= kinds, kinds)
        self.sweep(calls if EVERYTHING else calls[:2] + second, final, None, "--keep=1")

    def test_killed_where_a_checkpoint_is_replaced(self):
        final = self.undisturbed()
        saved = self.dir / "saved"
        shutil.copytree(self.folder, saved)
        first = self.folder / "step-00000001"
        calls = self.calls(saved=saved, resume=first)
        self.assertEqual(sum(call.kind == "mkdir" and ".staged-" in call.path for call in calls), STEPS - 1)
        renames = [i for i, call in enumerate(calls) if call.kind == "rename"]
        some = calls if EVERYTHING else calls[renames[0] - 4:renames[0] + 20]
        self.sweep(some, final, saved, resume=first)

    def test_killed_ranks(self):
        """Two ranks: one of them, or both at once, wherever either stands."""
        final = self.undisturbed(world=2)
        for rank in (0, 1):
            calls = self.calls("--keep=1", world=2, rank=rank)
            self.assertGreater(len(calls), 10)
            for do, every in (("kill", 23 if rank == 0 else 9), ("kill_all", 31 if rank == 0 else 13)):
                self.sweep(self.draw(calls, every), final, None, "--keep=1", ends=False, rank=rank, do=do, world=2)

    def refused(self, call, do, final, *options, rank=0, world=1, last=False, **how):
        """The fault strikes one save. Returns stderr's lines."""
        self.empty()
        self.weights.unlink(missing_ok=True)
        done = self.faults.run(self.command(*options, world=world), at=call.number, do=do, rank=rank, **how)
        self.assertEqual((done.fired.kind, done.fired.number), (call.kind, call.number))
        lines = [line.removeprefix("[rank 0] ") for line in done.stderr.splitlines() if not line.startswith("ftrun:")]
        self.check_whole(max(announced(done.stdout), default=0))
        if not last:
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.weights.read_bytes(), final)
            self.assertEqual(max(read_checkpoints(self.folder)), STEPS)
        return done, lines

    def check_warned(self, lines, words):
        """One line, unless nothing was lost: the removal of what is in nobody's way."""
        self.assertLessEqual(len(lines), 1, lines)
        for line in lines:
            self.assertRegex(line, r"^ftexec: the checkpoint step-\d{8} (was not written|is written, but)")
            self.assertIn(words, line)

    def test_refused_once_at_every_call(self):
        """The run goes on, with a warning; the saves after it work; nothing is left over."""
        final = self.undisturbed()
        second = self.second_save(self.calls("--keep=2"))
        for number, (do, words) in enumerate((("enospc", FULL), ("eio", "Input/output error"), ("erofs", "Read-only file system"))):
            for call in second if EVERYTHING else second[number::3]:
                with self.subTest(do=do, call=str(call)):
                    done, lines = self.refused(call, do, final, "--keep=2")
                    self.check_warned(lines, words)
                    self.assertEqual(len(lines), 1 if call.kind not in ("unlink", "rmdir") else len(lines))
                    self.assertIn(announced(done.stdout), ([1, 3], [1, 2, 3]))
                    left = [p.name for p in self.folder.iterdir() if p.name.startswith(".")]
                    self.assertTrue(not left or call.kind in ("unlink", "rmdir", "fsync"), left)

    def test_refused_on_another_rank(self):
        final = self.undisturbed(world=2)
        calls = self.calls(world=2, rank=1)
        staged = [i for i, call in enumerate(calls) if call.kind == "mkdir" and ".staged-" in call.path]
        for call in self.draw(calls[staged[0]:staged[2]], 6):
            with self.subTest(call=str(call)):
                _, lines = self.refused(call, "enospc", final, rank=1, world=2)
                self.check_warned(lines, FULL)
                if lines:
                    self.assertIn("rank 1: ", lines[0])

    def test_short_writes(self):
        final = self.undisturbed()
        for call in self.draw([c for c in self.second_save(self.calls()) if c.kind in ("write", "pwrite")], 2):
            with self.subTest(call=str(call)):
                done, lines = self.refused(call, "short", final)
                self.assertEqual((lines, announced(done.stdout)), ([], [1, 2, 3]))

    def test_a_disk_that_stays_broken(self):
        """From some call on nothing can be written: a warning for each save, and the last ends the run."""
        final = self.undisturbed()
        second = self.second_save(self.calls())
        for number, do in enumerate(("full", "enospc_sticky", "eio_sticky", "erofs_sticky", "readonly")):
            kinds = ("mkdir", "open", "fallocate", "pwrite") if do in ("full", "enospc_sticky") else ("mkdir", "open", "fsync", "rename")
            if do == "readonly":
                kinds = ("mkdir", "open", "rename")
            for call in self.draw([c for c in second if c.kind in kinds], 5)[:None if EVERYTHING else 3]:
                with self.subTest(do=do, call=str(call)):
                    done, lines = self.refused(call, do, final, last=True)
                    self.assertEqual((done.returncode, len(lines)), (74, 2), done.stderr)
                    self.assertIn("step-00000002 was not written", lines[0])
                    self.assertIn("step-00000003 was not written", lines[1])
                    self.assertEqual(announced(done.stdout), [1])
                    self.check_goes_on(self.check_whole(1), final)

    def test_the_last_save_fails(self):
        final = self.undisturbed()
        calls = self.calls()
        staged = [i for i, call in enumerate(calls) if call.kind == "mkdir" and ".staged-" in call.path]
        for call in self.draw(calls[staged[-1]:], 6):
            with self.subTest(call=str(call)):
                done, lines = self.refused(call, "eio", final, last=True)
                self.assertEqual((done.returncode, len(lines)), (74, 1), done.stderr)
                self.assertIn("step-00000003 was not written", lines[0])
                self.check_goes_on(self.check_whole(2), final)

    def test_refused_before_step_0(self):
        """What cannot be written before training is an error, not a warning; what cannot be removed is neither."""
        final = self.undisturbed()
        calls = self.calls()
        before = calls[:next(i for i, call in enumerate(calls) if ".staged-" in call.path)]
        self.assertGreater(len(before), 3)
        for call in before:
            for do in ("eio", "enospc"):
                with self.subTest(call=str(call), do=do):
                    done, lines = self.refused(call, do, final, last=True)
                    if call.kind == "unlink":
                        self.assertEqual((done.returncode, lines), (0, []))
                    else:
                        self.assertEqual((done.returncode, len(lines)), (74, 1), done.stderr)
                        self.assertNotIn("step 0", done.stdout)

    def power_cut(self, *options, world=1, saved=None, resume="auto", limit):
        """In every state a whole checkpoint is found that is not older than the last one announced."""
        self.restore(saved)
        before = newest_whole(read_checkpoints(self.folder))
        log = self.dir / "log"
        log.unlink(missing_ok=True)
        faults = FileFaults(self.out, mark=log, env=environment(OMP_NUM_THREADS=1), timeout=120)
        words = " ".join(f"'{word}'" for word in self.command(*options, world=world, resume=resume))
        # Through a program that writes without stdio, which the record does not see.
        record = faults.record(["/bin/bash", "-c", f"set -o pipefail; {words} | dd of='{log}' bs=64k status=none"])
        self.assertEqual((record.done.returncode, record.done.stderr), (0, ""))
        self.assertEqual(announced(log.read_text()), list(range(1 if saved is None else 2, STEPS + 1)))
        self.assertEqual(b"".join(call.data for call in record.calls if call.kind == "mark"), log.read_bytes())
        final, sample = self.weights.read_bytes(), []

        def look(state):
            found = checkpoints_of(state.tree, self.folder.name)
            promised = max(announced(state.said.decode()), default=0)
            # What goes on from an older one is another branch.
            promised = (0 if saved is None else 1, promised) if promised > 0 else before
            newest = newest_whole(found)
            damaged = {step: complaint(files) for step, files in found.items() if complaint(files) is not None}
            if newest < promised:
                return f"{promised} was promised, and {newest} is there; {damaged}"
            if draw.random() < (0.02 if EVERYTHING else 0.004):
                sample.append((newest[1], dict(state.tree)))
            return f"damaged: {damaged}" if damaged else None

        draw = random.Random(12)
        count, wrong = 0, []
        for ordered in (False, True):
            more, complaints = PowerCut(record, ordered).check(look, seed=12, limit=limit)
            count, wrong = count + more, wrong + complaints
        self.assertEqual(wrong, [])
        self.assertGreater(count, 150)
        return count, final, sample

    def check_sample(self, final, sample, *options, most):
        for newest, tree in sample[:None if EVERYTHING else most]:
            shutil.rmtree(self.out)
            self.out.mkdir()
            write_tree(tree, self.out)
            self.check_goes_on(newest, final, *options)

    def test_power_cuts(self):
        count, final, sample = self.power_cut(limit=8 if EVERYTHING else 1)
        self.check_sample(final, sample, most=6)

    def test_power_cuts_with_deletion(self):
        count, final, sample = self.power_cut("--keep=1", limit=8 if EVERYTHING else 1)
        self.check_sample(final, sample, "--keep=1", most=6)

    def test_power_cuts_of_two_ranks(self):
        self.power_cut("--keep=1", world=2, limit=4 if EVERYTHING else 0)

    def test_power_cuts_where_a_checkpoint_is_replaced(self):
        self.undisturbed()
        saved = self.dir / "saved"
        shutil.copytree(self.folder, saved)
        self.power_cut(saved=saved, resume=self.folder / "step-00000001", limit=4 if EVERYTHING else 0)


if __name__ == "__main__":
    unittest.main()
