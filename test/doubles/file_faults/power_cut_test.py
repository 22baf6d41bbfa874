"""The replayer of power cuts against protocols that are right, and such as are wrong in one way each."""

import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from file_faults import FileFaults, library
from power_cut import PowerCut
from record import FaultsError
from tree import FOLDER, Symlink, read_tree, write_tree

PROGRAMS = library().parent
OLD, NEW = b"o" * 7000, b"n" * 15000


class Case(unittest.TestCase):
    def setUp(self):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="ft-power-cut-test-"))
        self.addCleanup(subprocess.run, ["rm", "-rf", self.base])
        self.folder, self.log = self.base / "in", self.base / "log"
        self.folder.mkdir()

    def record(self, code, before=None, **options):
        """What Python code does to the folder, which holds the tree `before`."""
        write_tree(before or {}, self.folder)
        command = [sys.executable, "-c", "import os\n" + code]
        return FileFaults(self.folder, mark=self.log).record(command, cwd=self.folder, **options)

    def trees(self, record, **options):
        return [state.tree for state in PowerCut(record, **options).states(limit=4)]


def check_file(state):
    """The old file or the new one, and once the program has said that it is saved, the new one."""
    file = state.tree.get("file")
    if file not in (OLD, NEW):
        return "the file is neither the old nor the new one"
    if state.said == b"saved\n" and file != NEW:
        return "what was saved is lost"
    return None


def check_folder(state):
    good = {"weights": NEW, "manifest": NEW}
    for step in ("step-1", "step-2"):
        found = {path.split("/")[1]: data for path, data in state.tree.items() if path.startswith(step + "/")}
        if step in state.tree and found != good:
            return f"{step} is there, and not whole"
    if "step-1" not in state.tree:
        return "the older one is gone"
    if state.said == b"saved\n" and "step-2" not in state.tree:
        return "what was saved is lost"
    return None


class Protocols(Case):
    def violations(self, name, ordered_names):
        write_tree({"file": OLD, "other": FOLDER, "step-1": FOLDER, "step-1/weights": NEW, "step-1/manifest": NEW}, self.folder)
        faults = FileFaults(self.folder, mark=self.log)
        record = faults.record([PROGRAMS / "ft_file_faults_protocols", name, self.folder, self.log])
        self.assertEqual(record.done.returncode, 0, record.done.stderr)
        count, wrong = PowerCut(record, ordered_names).check(check_folder if name.startswith("folder") else check_file)
        self.assertGreater(count, 10)
        subprocess.run(["rm", "-rf", self.folder])
        self.folder.mkdir()
        self.log.unlink()
        return wrong

    def test_protocols_that_are_right(self):
        for name in ("file", "folder"):
            for ordered_names in (False, True):
                self.assertEqual(self.violations(name, ordered_names), [], name)

    def test_protocols_that_are_wrong(self):
        for name, word in (("file_unsynced", "neither"), ("file_synced_early", "neither"), ("renamed_before_write", "neither"),
                           ("unlinked_before_rename", "neither"), ("in_place", "neither"), ("name_unsynced", "lost"),
                           ("folder_files_unsynced", "not whole"), ("folder_outer_unsynced", "lost")):
            for ordered_names in (False, True):
                wrong = self.violations(name, ordered_names)
                self.assertTrue(any(word in line for line in wrong), f"{name}: {wrong}")

    def test_what_only_ordered_names_forgive(self):
        """ext4 commits all names with any fsync; POSIX promises them with that of their own folder alone."""
        for name, word in (("folder_inner_unsynced", "not whole"), ("other_folder_synced", "lost")):
            self.assertTrue(any(word in line for line in self.violations(name, ordered_names=False)), name)
            self.assertEqual(self.violations(name, ordered_names=True), [], name)

    def test_a_complaint_says_what_was_lost(self):
        wrong = self.violations("file_unsynced", ordered_names=False)
        self.assertIn("power cut after #5 rename file.tmp -> file; lost: #3 write file.tmp [5000, +5000]: the file is neither the old nor "
                      "the new one", wrong)


class States(Case):
    def test_the_classic_empty_file(self):
        record = self.record("fd = os.open('f.tmp', os.O_WRONLY | os.O_CREAT)\nos.write(fd, b'x' * 10)\nos.rename('f.tmp', 'f')")
        for ordered in (False, True):
            found = self.trees(record, ordered_names=ordered)
            for tree in ({}, {"f": b""}, {"f": bytes(10)}, {"f": b"x" * 10}, {"f.tmp": b""}, {"f.tmp": b"x" * 10}):
                self.assertIn(tree, found)
            self.assertFalse(any(len(tree) == 2 for tree in found))  # a rename is one transaction

    def test_a_write_is_torn_at_blocks(self):
        data = bytes(range(1, 251)) * 40  # 10,000 bytes, none of them zero
        code = "fd = os.open('f', os.O_WRONLY)\nos.pwrite(fd, bytes(range(1, 251)) * 40, 100)"
        record = self.record(code, {"f": b"-" * 5000})
        found = {state.tree["f"] for state in PowerCut(record).states(limit=40)}
        self.assertIn(b"-" * 5000, found)
        self.assertIn(b"-" * 100 + data, found)
        self.assertIn(b"-" * 100 + data[:3996] + b"-" * 904, found)  # the first block
        self.assertIn(b"-" * 5000 + bytes(5100), found)  # the size alone
        self.assertGreater(len(found), 6)
        whole, without = b"-" * 100 + data, b"-" * 5000 + bytes(5100)
        for content in found:
            for block in range(0, len(content), 4096):
                part = content[block:block + 4096]
                self.assertTrue(part in (whole[block:block + len(part)], without[block:block + len(part)]), f"block at {block}")

    def test_writes_come_out_of_order(self):
        code = "fd = os.open('f', os.O_WRONLY)\nos.write(fd, b'a' * 4096)\nos.write(fd, b'b' * 4096)\nos.write(fd, b'c' * 4096)"
        found = [tree["f"] for tree in self.trees(self.record(code, {"f": b""}))]
        for parts in ("b", "c", "ab", "ac", "bc", "abc"):
            expected = b"".join((letter.encode() if letter in parts else b"\0") * 4096 for letter in "abc")
            self.assertIn(expected[:4096 * (ord(parts[-1]) - ord("a") + 1)], found)

    def test_zeros_in_one_write_of_several(self):
        code = "fd = os.open('f', os.O_WRONLY)\nos.write(fd, b'a' * 10)\nos.write(fd, b'b' * 10)"
        found = [state.tree["f"] for state in PowerCut(self.record(code, {"f": b""})).states(limit=0)]
        for expected in (b"a" * 10 + bytes(10), bytes(10) + b"b" * 10, bytes(20), b"a" * 10, b"a" * 10 + b"b" * 10):
            self.assertIn(expected, found)

    def test_names_in_order_without_data(self):
        record = self.record("os.write(os.open('f', os.O_WRONLY | os.O_CREAT), b'a')\nos.mkdir('d')\nos.mkdir('e')")
        found = [state.tree for state in PowerCut(record, ordered_names=True).states(limit=0) if state.done]
        for expected in ({}, {"f": b""}, {"f": b"", "d": FOLDER}, {"f": b"a", "d": FOLDER}, {"f": b"", "d": FOLDER, "e": FOLDER}):
            self.assertIn(expected, found)
        self.assertNotIn({"e": FOLDER}, found)
        self.assertIn({"e": FOLDER}, [state.tree for state in PowerCut(record).states(limit=0)])

    def test_fdatasync_commits_no_names(self):
        code = "os.mkdir('d')\nfd = os.open('f', os.O_WRONLY)\nos.write(fd, b'new')\nos.{}(fd)"
        for sync, ends in (("fdatasync", [{"f": b"new"}, {"f": b"new", "d": FOLDER}]), ("fsync", [{"f": b"new", "d": FOLDER}])):
            record = self.record(code.format(sync), {"f": b"old"})
            self.assertEqual([s.tree for s in PowerCut(record, ordered_names=True).states() if s.done], ends)
            subprocess.run(["rm", "-rf", self.folder / "d", self.folder / "f"], check=True)

    def test_what_is_synced_stays(self):
        code = """
fd = os.open('f', os.O_WRONLY | os.O_CREAT)
os.write(fd, b'a' * 5000)
os.fsync(fd)
folder = os.open('.', os.O_RDONLY)
os.fsync(folder)
os.write(os.open('../log', os.O_WRONLY | os.O_CREAT), b'1')
os.write(fd, b'b' * 5000)
os.mkdir('d')
os.rename('f', 'd/f')
os.fsync(folder)
"""
        record = self.record(code)
        for state in PowerCut(record, ordered_names=True).states():
            file = state.tree.get("f", state.tree.get("d/f"))
            self.assertTrue(not state.said or (file is not None and file.startswith(b"a" * 5000)), state)
        # Without the order: the old name is gone from its folder, and the new one has not come to its own.
        ends = {tuple(state.tree) for state in PowerCut(record).states() if state.done}
        self.assertEqual(ends, {("d",), ("d", "d/f")})

    def test_a_sync_covers_only_what_ended_before_it_began(self):
        """Calls of two threads that overlap have no order: made up here, since no test could time them."""
        record = self.record("fd = os.open('f', os.O_WRONLY)\nos.write(fd, b'new')\nos.fsync(fd)", {"f": b"old"})
        opened, write, sync = record.calls
        self.assertNotIn({"f": b"old"}, [s.tree for s in PowerCut(record).states() if s.done])
        late = dataclasses.replace(write, begin=sync.begin - 1, end=sync.begin + 0.5)
        record.calls = [opened, late, sync]
        self.assertIn({"f": b"old"}, [s.tree for s in PowerCut(record).states() if s.done])
        record = self.record("os.mkdir('d')\nos.fsync(os.open('.', os.O_RDONLY))", {})
        make, sync = record.calls
        self.assertEqual([s.tree for s in PowerCut(record).states() if s.done], [record.after])
        record.calls = [dataclasses.replace(make, end=sync.begin + 0.5), sync]
        self.assertIn(record.before, [s.tree for s in PowerCut(record).states() if s.done])

    def test_a_later_write_lies_over_one_that_is_never_durable(self):
        code = ("fd = os.open('f', os.O_WRONLY)\nos.pwrite(fd, b'first', 0)\n"
                "try: os.fsync(fd)\nexcept OSError: pass\nos.pwrite(fd, b'again', 0)\nos.fsync(fd)")
        record = self.record(code, {"f": b""}, at=3, do="eio")
        self.assertEqual([s.tree for s in PowerCut(record).states() if s.done], [{"f": b"again"}])

    def test_a_failed_fsync_covers_nothing_and_the_next_one_neither(self):
        """The kernel marks the pages clean after an error: a second fsync succeeds, and the data is nowhere."""
        code = ("fd = os.open('f', os.O_WRONLY)\nos.write(fd, b'new')\n"
                "for i in range(2):\n  try: os.fsync(fd)\n  except OSError: pass")
        for number, lost in ((3, True), (4, False)):
            record = self.record(code, {"f": b"old"}, at=number, do="eio")
            self.assertEqual(record.done.fired.kind, "fsync")
            self.assertEqual({"f": b"old"} in [s.tree for s in PowerCut(record).states() if s.done], lost)
            (self.folder / "f").unlink()

    def test_o_dsync(self):
        code = "fd = os.open('f', os.O_WRONLY{})\nos.write(fd, b'new')"
        for flag, lost in (("", True), (" | os.O_DSYNC", False), (" | os.O_SYNC", False)):
            record = self.record(code.format(flag), {"f": b"old"})
            self.assertEqual({"f": b"old"} in [s.tree for s in PowerCut(record).states() if s.done], lost)
            (self.folder / "f").unlink()

    def test_every_operation_is_replayed(self):
        """The record of a program that makes every call explains what it leaves; PowerCut checks that by itself."""
        outside = self.base / "outside"
        outside.mkdir()
        record = FileFaults(self.folder).record([PROGRAMS / "ft_file_faults_every_call", self.folder, outside])
        self.assertEqual(record.done.returncode, 0)
        states = PowerCut(record).states(limit=1)
        self.assertEqual(next(states).tree, {})
        for _ in range(200):
            self.assertIsNotNone(next(states))
        states.close()

    def test_links_exchange_and_names_of_one_file(self):
        write_tree({"a": b"1", "b": b"2", "d": FOLDER, "s": Symlink("a")}, self.folder)
        os.link(self.folder / "a", self.folder / "a2")
        code = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
assert libc.renameat2(-100, b'a', -100, b'd', 2) == 0  # exchange
os.rename('d', 'd')
os.link('b', 'b2')
os.rename('b', 'b2')  # one file: both stay
os.replace('s', 't')
os.write(os.open('a2', os.O_WRONLY), b'3')
os.sync()
"""
        record = FileFaults(self.folder).record([sys.executable, "-c", "import os\n" + code], cwd=self.folder)
        self.assertEqual(record.done.returncode, 0, record.done.stderr)
        final = {"a": FOLDER, "d": b"3", "a2": b"3", "b": b"2", "b2": b"2", "t": Symlink("a")}
        self.assertEqual(record.after, final)
        self.assertEqual([s.tree for s in PowerCut(record).states() if s.done], [final])  # sync() covers all

    def test_changes_that_were_not_seen_are_refused(self):
        record = self.record("os.mkdir('d')")
        record.after["d/f"] = b"by somebody else"
        with self.assertRaises(FaultsError) as raised:
            PowerCut(record)
        self.assertIn("'d/f'", str(raised.exception))

    def test_the_same_seed_gives_the_same_states(self):
        code = "fd = os.open('f', os.O_WRONLY | os.O_CREAT)\nfor i in range(4): os.write(fd, bytes([i + 1]) * 9000)"
        record = self.record(code)
        states = lambda seed, limit: [str(state) for state in PowerCut(record).states(seed, limit)]
        self.assertEqual(states(1, 8), states(1, 8))
        self.assertNotEqual(states(1, 8), states(2, 8))
        self.assertLess(len(states(1, 0)), len(states(1, 8)))

    def test_a_state_is_a_folder_of_the_checkers_own(self):
        record = self.record("os.mkdir('d')\nos.symlink('nowhere', 'd/s')\nos.close(os.open('d/f', os.O_CREAT))")
        folders = []
        for state in PowerCut(record).states():
            self.assertEqual(read_tree(state.folder), state.tree)
            (pathlib.Path(state.folder) / "mess").write_text("x")
            folders.append(state.folder)
        self.assertGreater(len(folders), 3)
        self.assertFalse(any(os.path.exists(folder) for folder in folders))


if __name__ == "__main__":
    unittest.main()
