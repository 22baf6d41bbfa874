"""The library of faults against programs whose calls are known: what it counts, and that each fault strikes as it should."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

from file_faults import FAULTS, FaultsError, FileFaults, library
from record import WRITES

PROGRAMS = library().parent
PYTHON = sys.executable


def every_call(*folders):
    return [PROGRAMS / "ft_file_faults_every_call", *folders]


def protocol(name, folder, *log):
    return [PROGRAMS / "ft_file_faults_protocols", name, folder, *log]


class Case(unittest.TestCase):
    def setUp(self):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="ft-faults-test-"))
        self.addCleanup(subprocess.run, ["rm", "-rf", self.base])
        self.folder, self.outside = self.base / "in", self.base / "outside"
        self.folder.mkdir()
        self.outside.mkdir()
        self.faults = FileFaults(self.folder)

    def fresh(self):
        """The folder as it was before a protocol."""
        subprocess.run(["rm", "-rf", self.folder], check=True)
        (self.folder / "other").mkdir(parents=True)
        (self.folder / "file").write_bytes(b"o" * 7000)

    def python(self, code):
        return [PYTHON, "-c", "import os, time\n" + code]


class Counting(Case):
    def test_every_call_is_counted_once(self):
        """By each of libc's names and by number; by duplicates of descriptors, relative paths and several threads."""
        plain = subprocess.run(every_call(self.folder, self.outside), capture_output=True, text=True)
        self.assertEqual((plain.returncode, plain.stderr), (0, ""))
        subprocess.run(["rm", "-rf", self.folder])
        self.folder.mkdir()
        record = self.faults.record(every_call(self.folder, self.outside))
        self.assertEqual(record.done.stdout, plain.stdout)
        expected = {kind: int(count) for kind, count in map(str.split, plain.stdout.splitlines())}
        pid = record.calls[0].pid
        mine = [call for call in record.calls if call.pid == pid]
        self.assertEqual({kind: sum(call.kind == kind for call in mine) for kind in expected}, expected)
        self.assertEqual(sorted(call.number for call in mine), list(range(1, sum(expected.values()) + 1)))
        child = [call for call in record.calls if call.pid != pid]
        self.assertEqual([(call.kind, call.number) for call in child], [("mkdir", 1)])
        self.assertTrue(all(call.path.startswith(str(self.folder)) for call in record.calls if call.kind != "link"))

    def test_the_clock_tells_what_came_before(self):
        calls = self.faults.record(every_call(self.folder, self.outside)).calls
        ticks = sorted(tick for call in calls for tick in (call.begin, call.end))
        self.assertEqual(ticks, list(range(1, 2 * len(calls) + 1)))
        self.assertTrue(all(call.begin < call.end for call in calls))

    def test_ranks_count_for_themselves_and_share_a_clock(self):
        code = "pid = os.fork()\nos.environ['RANK'] = '0' if pid else '1'\nos.execvp({!r}, ['x', '-c', {!r}, os.environ['RANK']])"
        made = "import os, sys\nfor i in range(5): os.mkdir(sys.argv[1] + str(i))"
        record = self.faults.record(self.python(code.format(PYTHON, made)), cwd=self.folder)
        for rank in (0, 1):
            self.assertEqual([call.number for call in record.calls if call.rank == rank], [1, 2, 3, 4, 5])
        ticks = [tick for call in record.calls for tick in (call.begin, call.end)]
        self.assertEqual(len(set(ticks)), 20)

    def test_what_cannot_be_seen_is_told(self):
        data = "import mmap\nfd = os.open('f', os.O_RDWR | os.O_CREAT)\nos.truncate(fd, 4096)\n"
        for code in ("import ctypes\nlibc = ctypes.CDLL(None)\nassert libc.fopen(b'f', b'w')",
                     data + "mmap.mmap(fd, 4096)",
                     data + "import socket\na, b = socket.socketpair()\nos.copy_file_range(os.open('/etc/passwd', 0), fd, 10)",
                     "os.rename(os.path.join('..', 'outside', 'x'), 'x')"):
            (self.outside / "x").write_bytes(b"x")
            with self.assertRaises(FaultsError, msg=code) as raised:
                self.faults.count(self.python(code), cwd=self.folder)
            self.assertIn(str(self.folder), str(raised.exception))
        self.faults.count(self.python("import mmap\nfd = os.open('f', os.O_RDONLY)\nmmap.mmap(fd, 0, prot=mmap.PROT_READ)"),
                          cwd=self.folder)

    def test_a_program_that_does_not_load_the_library(self):
        self.faults.library = self.base / "none.so"
        with self.assertRaises(FaultsError) as raised:
            self.faults.count(["/bin/true"])
        self.assertIn("did not load", str(raised.exception))

    def test_settings_that_mean_nothing(self):
        for variables in ({"FT_FAULTS_DO": "explode"}, {"FT_FAULTS_AT": "0"}, {"FT_FAULTS_AT": "3x"}, {"FT_FAULTS_WHEN": "never"},
                          {"FT_FAULTS_PREFIX": "relative"}, {"FT_FAULTS_RANK": "-2"}):
            env = {"LD_PRELOAD": str(library()), "FT_FAULTS_PREFIX": "/x", "FT_FAULTS_AT": "1", "FT_FAULTS_DO": "kill", **variables}
            done = subprocess.run(["/bin/true"], env=env, capture_output=True, text=True)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (64, 1), variables)
            self.assertIn("means nothing", done.stderr)


class Faults(Case):
    """One program: open, write, write, write, fsync, rename, fsync of the folder."""

    def kinds(self):
        self.fresh()
        calls = self.faults.count(protocol("file", self.folder)).calls
        self.assertEqual([call.kind for call in calls], ["open", "write", "write", "write", "fsync", "rename", "fsync"])
        return [call.kind for call in calls]

    def run_at(self, number, do, when="before"):
        self.fresh()
        return self.faults.run(protocol("file", self.folder), at=number, do=do, when=when)

    def sizes(self):
        return {path.name: path.stat().st_size for path in self.folder.iterdir() if path.is_file()}

    def test_kill_before_and_after_each_call(self):
        kinds = self.kinds()
        states = []
        for number, kind in enumerate(kinds, 1):
            for when in ("before", "after"):
                done = self.run_at(number, "kill", when)
                self.assertEqual((done.returncode, done.fired.kind, done.fired.number), (-signal.SIGKILL, kind, number))
                states.append(self.sizes())
        old = {"file": 7000}
        writing = [{"file": 7000, "file.tmp": size} for size in (0, 5000, 10000, 15000)]
        new = {"file": 15000}
        self.assertEqual(states[0::2], [old, *writing, writing[-1], new])
        self.assertEqual(states[1::2], [*writing, writing[-1], new, new])

    def test_beyond_the_last_call_nothing_happens(self):
        done = self.run_at(len(self.kinds()) + 1, "kill")
        self.assertEqual((done.returncode, done.fired, self.sizes()), (0, None, {"file": 15000}))

    def test_errors_at_each_call(self):
        for do, text in (("eio", "Input/output error"), ("enospc", "No space left on device"), ("erofs", "Read-only file system")):
            for number, kind in enumerate(self.kinds(), 1):
                done = self.run_at(number, do)
                self.assertEqual((done.returncode, done.fired.kind), (1, kind))
                self.assertIn(text, done.stderr)
                self.assertEqual(self.sizes()["file"], 15000 if number == 7 else 7000)

    def test_an_error_after_the_call_was_made(self):
        done = self.run_at(6, "eio", when="after")
        self.assertEqual((done.returncode, self.sizes()), (1, {"file": 15000}))
        done = self.run_at(1, "eio", when="after")
        self.assertEqual((done.returncode, self.sizes()), (1, {"file": 7000, "file.tmp": 0}))

    def test_short_writes(self):
        """The program writes the rest, as programs must."""
        for number in (2, 3, 4):
            self.fresh()
            record = self.faults.record(protocol("file", self.folder), at=number, do="short")
            writes = [call.result for call in record.calls if call.kind in WRITES]
            expected = [5000] * 3
            expected[number - 2:number - 1] = [2500, 2500]
            self.assertEqual((record.done.returncode, writes, self.sizes()), (0, expected, {"file": 15000}))
        done = self.run_at(5, "short")  # no write
        self.assertEqual((done.returncode, done.fired), (0, None))

    def test_short_writes_of_each_kind(self):
        code = ("fd = os.open('f', os.O_RDWR | os.O_CREAT)\n"
                "for i in range(2):\n"
                "  print(os.write(fd, b'abcdef'), os.pwrite(fd, b'abcdef', 6), os.writev(fd, [b'a', b'bcd', b'ef']),"
                " os.pwritev(fd, [b'ab', b'', b'cd', b'ef'], 20), os.write(fd, b'a'))")
        counts = self.faults.count(self.python(code), cwd=self.folder)
        for i, number in enumerate(counts.writes[:5]):
            done = self.faults.run(self.python(code), at=number, do="short", cwd=self.folder)
            expected = [6, 6, 6, 6, 1] * 2
            if i < 4:
                expected[i] = 3
            self.assertEqual([int(n) for n in done.stdout.split()], expected)
            self.assertEqual(done.fired is None, i == 4)  # half of one byte is none

    def tries(self, do, at):
        """A program that goes on whatever fails: which of its calls do."""
        code = """
def attempt(name, what):
    try: what()
    except OSError as error: print(name, error.errno)
if not os.path.exists('old'): os.mkdir('old')
attempt('open', lambda: os.open('f', os.O_RDWR | os.O_CREAT))
fd = os.open('g', os.O_RDWR)
attempt('write', lambda: print('wrote', os.write(fd, b'123456')))
attempt('again', lambda: os.write(fd, b'123456'))
attempt('fsync', lambda: os.fsync(fd))
attempt('truncate', lambda: os.ftruncate(fd, 1))
attempt('mkdir', lambda: os.mkdir('new'))
attempt('rename', lambda: os.rename('f', 'f2'))
attempt('unlink', lambda: os.unlink('g'))
attempt('rmdir', lambda: os.rmdir('old'))
"""
        subprocess.run(["rm", "-rf", self.folder])
        (self.folder / "old").mkdir(parents=True)
        (self.folder / "g").write_bytes(b"")
        done = self.faults.run(self.python(code), at=at, do=do, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split()

    def test_faults_that_last(self):
        """The calls are: open f, open g, write, write, fsync, truncate, mkdir, rename, unlink, rmdir."""
        self.assertEqual(self.tries("eio", 3), ["write", "5"])
        self.assertEqual(self.tries("eio_sticky", 3), "write 5 again 5 fsync 5 truncate 5 mkdir 5 rename 5 unlink 5 rmdir 5".split())
        # A full disk still lets files be removed and cut.
        self.assertEqual(self.tries("enospc_sticky", 3), "write 28 again 28 fsync 28 mkdir 28 rename 28".split())
        self.assertEqual(self.tries("enospc_sticky", 9), "wrote 6 unlink 28".split())
        self.assertEqual(self.tries("full", 3), "wrote 3 again 28 fsync 28 mkdir 28 rename 28".split())
        self.assertEqual(self.tries("full", 9), ["wrote", "6"])
        self.assertEqual(self.tries("erofs_sticky", 5), "wrote 6 fsync 30 truncate 30 mkdir 30 rename 30 unlink 30 rmdir 30".split())
        # A folder that is read-only has no say over files that are open.
        self.assertEqual(self.tries("readonly", 1), "open 13 wrote 6 mkdir 13 rename 13 unlink 13 rmdir 13".split())

    def test_a_fault_strikes_once_and_the_rank_it_is_meant_for(self):
        """Of two ranks one; and not again after a restart, so that a job can be seen to recover."""
        code = ("import subprocess, sys\n"
                "for rank in (0, 1, 1):\n"
                "  made = 'import os, sys; os.mkdir(sys.argv[1])'\n"
                "  print(subprocess.run([sys.executable, '-c', made, 'd'], env={**os.environ, 'RANK': str(rank)}).returncode)\n"
                "  os.path.isdir('d') and os.rmdir('d')")
        done = self.faults.run(self.python(code), at=1, do="kill", rank=1, cwd=self.folder)
        self.assertEqual((done.stdout.split(), done.fired.rank), (["0", "-9", "0"], 1))

    def test_all_ranks_are_killed_and_their_launcher_is_not(self):
        code = ("import subprocess, sys\n"
                "start = lambda rank, code: subprocess.Popen([sys.executable, '-c', 'import os, time\\n' + code],"
                " env={**os.environ, 'RANK': str(rank)})\n"
                "idle = [start(rank, 'open(\"../outside/' + str(rank) + '\", \"x\"); time.sleep(100)') for rank in (1, 2)]\n"
                "while len(os.listdir('../outside')) < 2: time.sleep(0.01)\n"
                "first = start(0, 'os.mkdir(\"d\")')\n"
                "print(*(process.wait() for process in [first, *idle]), os.path.exists('d'))")
        done = self.faults.run(self.python(code), at=1, do="kill_all", cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout.split()), (0, ["-9", "-9", "-9", "False"]), done.stderr)

    def test_all_names_of_faults_are_known(self):
        for do in FAULTS:
            self.assertNotEqual(self.run_at(1, do).returncode, 64)


if __name__ == "__main__":
    unittest.main()
