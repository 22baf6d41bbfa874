"""The bundle that tools/gpu/check makes for a machine without compiler: in a tree that has Python and the C library alone, over
emulated GPUs, all parts are tried; the opening fails where it is told to; runs that are killed at any second go on where they were."""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import unittest
import zipfile

import harness
from gpu_check_test import SCRIPTS

import every_part
import levers

EMULATED = pathlib.Path(os.environ["FT_EMULATED"])
EMULATED_TESTS = pathlib.Path(os.environ["FT_EMULATED_TESTS"])
OPS = ("cast", "fill", "embedding_grad")  # of the conformance cases; all of them take minutes
SHORT = "--parts=conformance,conformance-deterministic,memory,models"  # of seconds, not of minutes
SECONDS = 2000  # some hundred suffice where nothing else runs
ROOT_PARTS = ("usr/bin", "usr/lib", "lib64", "proc", "dev", "tmp", "out")
WORDS = (  # of its rows' names
    ("everything", "offload of all three", "larger than the device"),
    ("shapes", "attention_64x1024x12x64, fast", "attention_32x1024x12_on_2x128, own", "loss_8192x768x50257", "small shapes"),
    ("timing", "zero again", "on normal bf16 values"),
    ("one_gpu", "Init", "Split", "RegisteredMemory", "Window", "Capture", "Abort", "two ranks on one GPU", "sums of two ranks", "KILL", "STOP",
     "the GPU is free", "NVLS", "NVLink", "networks"),
)


def can_unshare():
    return subprocess.run(["unshare", "--mount", "--pid", "--fork", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True,
                          check=False).returncode == 0


def libraries_of(program):
    """Where the loader finds what a program needs."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return {pathlib.Path(word) for line in said.splitlines() for word in line.split() if word.startswith("/")}


def copy_python(root):
    """Its program and its own modules, without what other packages have installed, and the libraries of both."""
    library = pathlib.Path(sysconfig.get_paths()["stdlib"])
    shutil.copytree(library, root / library.relative_to("/"), dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("__pycache__", "test", "dist-packages", "site-packages", "idlelib", "lib2to3"))
    program = pathlib.Path(sys.executable).resolve()
    (root / "usr/bin/python3").write_bytes(program.read_bytes())
    (root / "usr/bin/python3").chmod(0o755)
    needed = libraries_of(program)
    for module in (library / "lib-dynload").glob("*.so"):
        needed |= libraries_of(module)
    return needed


def make_tree(root, programs):
    """As small as can be: no shell, no compiler, nothing of ours."""
    for part in ROOT_PARTS:
        (root / part).mkdir(parents=True)
    (root / "lib").symlink_to("usr/lib")
    needed = copy_python(root)
    for program in programs:
        needed |= libraries_of(program)
    for path in needed:
        (root / path.relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path.resolve(), root / path.relative_to("/"))
    for program in programs:
        shutil.copy(program, root / "usr/bin")
    for device in ("null", "urandom", "shm"):
        (root / "dev" / device).mkdir() if device == "shm" else (root / "dev" / device).touch()


INSIDE = """set -e
root=$1; shift
mount --make-rprivate /
for device in null urandom shm; do mount --bind "/dev/$device" "$root/dev/$device"; done
mount -t proc proc "$root/proc"
exec chroot "$root" /usr/bin/env -i PATH=/usr/bin "$@"
"""


@unittest.skipUnless(can_unshare(), "skipped: no tree of its own can be made here (unshare)")
class GpuBundle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="ft-bundle-"))
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        programs = cls.dir / "programs"
        (programs / "test").mkdir(parents=True)
        (programs / "bin").symlink_to(harness.BIN)
        build = harness.BIN.parent
        for path in {path for part in every_part.PARTS for path in part.programs if path.startswith("test/")}:
            shutil.copy(build / path, programs / path)
        shutil.copy(EMULATED_TESTS, programs / "test" / "ft_gpu_conformance_test")
        cls.bundle = cls.dir / "bundle"
        made = subprocess.run([SCRIPTS / "check", f"--make-bundle={cls.bundle}", "--arch=90a", "--nccl=none", f"--build={build}",
                               f"--programs={programs}"], capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stdout + made.stderr
        cls.root = cls.dir / "root"
        make_tree(cls.root, [EMULATED, EMULATED_TESTS, harness.BIN / "ftexec", harness.BIN / "ftrun", "/usr/bin/env"])
        shutil.copy(cls.bundle, cls.root / "out")
        cls.json = cls.root / "out" / "gpu-check.json"

    def setUp(self):
        self.json.unlink(missing_ok=True)

    def command(self, *options, **fake):
        environment = [f"{name}={value}" for name, value in fake.items()]
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", INSIDE, "inside", self.root, *environment,
                "/usr/bin/python3", "/out/bundle", "--ftexec=/usr/bin/ftexec_emulated", "--emulated", "--steps=2", f"--ops={','.join(OPS)}",
                "--json=/out/gpu-check.json", f"--seconds={SECONDS}", *options]

    def check(self, *options, status=0, **fake):
        done = subprocess.run([str(word) for word in self.command(*options, **fake)], capture_output=True, text=True, timeout=SECONDS,
                              check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return self.report(), done.stdout

    def report(self):
        return json.loads(self.json.read_text())

    def every_sentence_has_a_row(self, rows):
        """Of what is to be tried."""
        for part, *names in WORDS:
            for words in names:
                self.assertTrue(any(row["part"] == part and words in row["what"] for row in rows), (part, words))

    def test_all_parts_in_one_run_and_nothing_in_the_next(self):
        report, said = self.check()
        self.assertIn("unpacked in /tmp/ft-gpu-check", said)
        self.assertEqual({row["part"] for row in report["rows"]} - {"standing"}, {part.name for part in every_part.PARTS})
        self.assertEqual(set(report["complete"]), {part.name for part in every_part.PARTS})
        self.assertEqual({row["result"] for row in report["rows"]}, {"passed", "skipped"})
        self.assertTrue(all(row["detail"] for row in report["rows"] if row["result"] == "skipped"))
        said = {row["part"]: row["detail"] for row in report["rows"] if row["part"].startswith("conformance")}
        self.assertEqual(said, {"conformance": f"{len(OPS)} tests, of {', '.join(OPS)} alone",
                                "conformance-deterministic": f"{2 * len(OPS)} tests, of {', '.join(OPS)} alone"})
        self.every_sentence_has_a_row(report["rows"])
        turns = [row["turns"] for row in report["rows"] if row["part"] == "levers"]
        self.assertEqual([[turn["way"] for turn in found] for found in turns], [list("ABAB")] * len(levers.SMALL_LEVERS))
        with zipfile.ZipFile(self.root / "out" / "gpu-check-traces.zip") as traces:
            for name in traces.namelist():
                self.assertIn("ph", json.loads(traces.read(name))["traceEvents"][-1])
        again, _ = self.check("--resume=/out/gpu-check.json")
        tried = [[row for row in found["rows"] if row["part"] != "standing"] for found in (report, again)]
        self.assertEqual(*tried)
        self.assertEqual(len(again["runs"]), 2)

    def test_an_opening_that_fails_costs_itself_alone(self):
        report, _ = self.check(SHORT, FT_EMULATED_MACHINE="memory=1000", status=1)
        rows = {(row["part"], row["what"]): row for row in report["rows"]}
        self.assertEqual({row["result"] for (part, _), row in rows.items() if part == "opening"}, {"FAILED"})
        self.assertEqual({row["result"] for (part, _), row in rows.items() if part.startswith("conformance")}, {"passed"})
        self.assertEqual(rows["models", "all of it"]["result"], "not tried")
        mended, _ = self.check(SHORT, "--resume=/out/gpu-check.json")
        self.assertEqual({row["result"] for row in mended["rows"]}, {"passed"})
        self.assertEqual(mended["rows"][0]["before"][0]["result"], "FAILED")
        self.assertEqual({row["run"] for row in mended["rows"] if row["part"].startswith("conformance")}, {0})

    def cut(self, seconds, *options):
        """Killed so many seconds after its first row was written; what it had done by then, where models stand aside: those rows are
        summed up anew at the end of each run."""
        before = self.json.stat().st_mtime_ns if self.json.exists() else 0
        running = subprocess.Popen([str(word) for word in self.command(*options)], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        while not self.json.exists() or self.json.stat().st_mtime_ns == before:
            self.assertIsNone(running.poll())
            time.sleep(0.05)
        time.sleep(seconds)
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        return {(row["part"], row["what"]): row for row in self.report()["rows"]
                if row["part"] != "standing" and row["result"] in ("passed", "skipped")}

    def test_cut_anywhere_twice_it_goes_on_where_it_was(self):
        seed = random.randrange(1 << 30)
        source = random.Random(seed)
        with self.subTest(seed=seed):
            done = self.cut(source.uniform(0, 20), SHORT)
            more = self.cut(source.uniform(0, 20), SHORT, "--resume=/out/gpu-check.json")
            self.assertEqual({key: more.get(key) for key in done}, done)
            report, _ = self.check(SHORT, "--resume=/out/gpu-check.json")
            rows = {(row["part"], row["what"]): row for row in report["rows"]}
            self.assertEqual({key: rows.get(key) for key in more}, more)
            self.assertEqual({row["result"] for row in rows.values()}, {"passed"})
            self.assertEqual(len(report["runs"]), 3)
            self.assertLessEqual(set(SHORT.removeprefix("--parts=").split(",")), set(report["complete"]))

    def test_time_counts_from_where_it_is_said_to(self):
        begin = time.monotonic()
        report, _ = self.check(f"--began={time.time() - SECONDS + 20}", status=3)
        self.assertLess(time.monotonic() - begin, 60)
        self.assertIn("no time", {row["result"] for row in report["rows"]})

    def test_a_file_to_go_on_from_that_is_none_costs_nothing(self):
        (self.root / "out" / "broken.json").write_text('{"rows": 7}')
        for name in ("broken.json", "not-there.json"):
            _, said = self.check(f"--resume=/out/{name}", "--parts=memory")
            self.assertIn("nothing to go on from", said)

    def test_a_damaged_bundle_is_one_line(self):
        data = bytearray(self.bundle.read_bytes())
        for damaged in (data[:len(data) // 2], data[:len(data) // 2] + b"damage" + data[len(data) // 2 + 6:]):
            file = self.dir / "damaged"
            file.write_bytes(damaged)
            done = subprocess.run([sys.executable, file, f"--unpack-to={self.dir / 'elsewhere'}"], capture_output=True, text=True,
                                  check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(list((self.dir / "elsewhere").glob("*")) if (self.dir / "elsewhere").exists() else [], [])


if __name__ == "__main__":
    unittest.main()
