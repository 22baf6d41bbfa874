"""Parts of tools/gpu/check that try a plan with everything, real shapes and collectives on one GPU: on an emulated one they
pass, and each says so when what it looks at goes wrong."""

import dataclasses
import json
import os
import pathlib
import shutil
import signal
import stat
import sys
import tempfile
import time
import unittest
import unittest.mock

import harness

EMULATED = pathlib.Path(os.environ["FT_EMULATED"])
EMULATED_TESTS = pathlib.Path(os.environ["FT_EMULATED_TESTS"])
SCRIPTS = harness.SOURCE / "tools" / "gpu"
sys.path.insert(0, str(SCRIPTS))
import everything
import one_gpu
import runner
import shapes

# An ftexec that trains as far as these parts see; $FAKE says what goes wrong.
FTEXEC = '''#!{python} -B
import json, os, pathlib, signal, sys, time
fake, line = os.environ.get("FAKE", ""), " ".join(sys.argv)
options = dict(word[2:].partition("=")[::2] for word in sys.argv if word.startswith("--"))
if "too-large" in line:
    print("a table")
    if fake == "many lines":
        print("at first this", file=sys.stderr)
    if fake != "takes it":
        print(f"ftexec: the arena needs {{2 if fake == 'other bytes' else 1 << 50}} bytes", file=sys.stderr)
        sys.exit(74)
metrics = pathlib.Path(options["metrics"])
rank = int(os.environ.get("RANK", "-1"))
if rank == 1:
    metrics.with_suffix(".1").write_text(str(os.getpid()))
    time.sleep(987)
if rank == 0:
    while not metrics.with_suffix(".1").exists():
        time.sleep(0.02)
    if fake == "no start":
        sys.exit("ftexec: rank 0: no GPU")
    metrics.write_text("{{}}\\n" * 9)
    stat = pathlib.Path(f"/proc/{{metrics.with_suffix('.1').read_text()}}/stat")
    while fake == "deaf" or (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] not in "TXZ"):
        time.sleep(0.02)
    print("ftexec: rank 0: rank 1 was lost" if fake != "dumb" else "ftexec: rank 0: something is wrong", file=sys.stderr)
    sys.exit(0 if fake == "status" else 75)
plain = "plain" in line
row = lambda step: dict(loss=1.5 if fake == "loss" and plain else 1.0, grad_norm=1.0, loss_scale=4.0,
                        skipped=step < dict(none=0, all=99).get(fake, 1))
metrics.write_text("".join(json.dumps(row(step)) + "\\n" for step in range(int(options["steps"]))))
if "save-weights" in options:
    pathlib.Path(options["save-weights"]).write_text("plain" if fake == "weights" and plain else "")
if "trace" in options:
    names = ("compute", "h2d") if fake == "trace" else ("compute", "h2d", "d2h")
    events = [dict(name="thread_name", ph="M", args=dict(name=name)) for name in names]
    pathlib.Path(options["trace"]).write_text(json.dumps(dict(traceEvents=events)))
'''
# A GoogleTest program with one test, or none.
TESTS = '''#!{python} -B
import json, os, pathlib, sys
fake = os.environ.get("FAKE", "")
options = dict(word[2:].partition("=")[::2] for word in sys.argv if word.startswith("--"))
test = dict(name="t", result="SKIPPED" if fake.startswith("skipped") else "COMPLETED",
            failures=[dict(failure="dq is off")] if fake == "wrong" else [])
if "gtest_output" in options:
    suites = [] if fake == "no test" else [dict(name="s", testsuite=[test])]
    pathlib.Path(options["gtest_output"][5:]).write_text(json.dumps(dict(testsuites=suites)))
print(fake if fake.startswith(("skipped", "silent")) else "  dq: 0.25 of what is allowed\\n  dk: 0.50 of what is allowed\\n" +
      ("" if fake == "samples" else f"  dq, finite{{'' if 'fast' in options['gtest_filter'] else ' and the same bits twice'}}: "
       "0.00 of what is allowed\\n") +
      "product: 1 ms on zeros\\nNCCL 2.30.7\\n[       OK ] t")
sys.exit(fake == "wrong")
'''


@dataclasses.dataclass
class Made:
    """Programs and plans of a folder; plans are as large as is said."""
    folder: pathlib.Path
    bytes: dict

    def program(self, name):
        return self.folder / name

    def plan(self, name):
        return self.folder / f"{name}.bin"

    def data(self, preset):
        return self.folder / "text.txt"

    def arena_bytes(self, name):
        return self.bytes.get(name, 1000)


class GpuTries(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="ft-tries-"))
        self.addCleanup(shutil.rmtree, self.dir)
        self.programs = runner.Programs(2)
        self.addCleanup(self.programs.end_all)

    def script(self, name, text):
        path = self.dir / name
        path.write_text(text.format(python=sys.executable))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def context(self, fake="", emulated=False, **kwargs):
        """With programs that only look like ours; PATH has no nvidia-smi but the one that a test puts there."""
        for name, text in (("ftexec", FTEXEC), ("ft_gpu_conformance_test", TESTS), ("ftrun", "#!/bin/sh\nshift 2\nexec \"$@\"\n")):
            self.script(name, text)
        return runner.Context(made=Made(self.dir, {"too-large": 1 << 50}), work=self.dir, results=self.dir,
                              gpus=[{"name": "a GPU", "bytes": 1 << 40}], emulated=emulated, ftexec=self.dir / "ftexec", steps=3,
                              text=self.dir, environment={**os.environ, "FAKE": fake}, deadline=time.monotonic() + 100,
                              programs=self.programs, **kwargs)

    def only(self, rows, word):
        found = [row for row in rows if word in row["what"]]
        self.assertEqual(len(found), 1, [row["what"] for row in rows])
        return found[0]

    # One plan with everything, and too large a one

    def everything(self, fake):
        rows = list(everything.everything(self.context(fake)))
        return self.only(rows, "offload of all three"), self.only(rows, "larger than the device")

    def test_everything_passes(self):
        same, large = self.everything("")
        self.assertEqual((same["result"], large["result"]), ("passed", "passed"), (same, large))
        self.assertIn(f"needs {1 << 50} bytes", large["detail"])

    def test_everything_finds_other_bits(self):
        for fake, words in (("loss", "step 0: loss"), ("weights", "weights differ"), ("trace", "no track d2h"),
                            ("none", "0 of 8 steps"), ("all", "8 of 8 steps")):
            with self.subTest(fake=fake):
                same, _ = self.everything(fake)
                self.assertEqual(same["result"], "FAILED")
                self.assertIn(words, same["detail"])

    def test_a_refusal_is_one_line_with_the_bytes(self):
        for fake in ("takes it", "many lines", "other bytes"):
            with self.subTest(fake=fake):
                self.assertEqual(self.everything(fake)[1]["result"], "FAILED")
        context = self.context()
        context.gpus[0]["bytes"] = 1 << 51
        self.assertEqual(self.only(list(everything.everything(context)), "larger")["result"], "skipped")

    # Real shapes

    def test_real_shapes_are_run_in_every_mode(self):
        rows = list(shapes.shapes(self.context()))
        self.assertEqual({row["result"] for row in rows}, {"passed"})
        self.assertEqual(len(rows), 1 + 8)
        row = self.only(rows, "attention_64x1024x12x64, own")
        self.assertIn("below 0.50 of what", row["detail"])
        self.assertEqual(row["detail"].partition("; ")[2], "1 results finite and the same bits twice")
        self.assertEqual(self.only(rows, "loss_8192x768x50257, fast")["detail"].partition("; ")[2], "1 results finite")
        self.assertEqual(len(row["found"]), 3)
        self.assertEqual({row["result"] for row in shapes.timing(self.context())}, {"passed"})

    def test_every_real_shape_is_a_test_of_the_program(self):
        listed = harness.run(EMULATED_TESTS, "--gtest_list_tests").stdout
        real = listed.partition("DISABLED_Real/")[2].partition("\nSmall/")[0]
        names = [line.split("/")[1].split()[0] for line in real.splitlines()[1:] if "/" in line]
        self.assertEqual(sorted(names),
                         sorted(f"{shape}_{mode}" for shape in shapes.SHAPES for mode in shapes.modes_of(shape)))
        for name in one_gpu.ONE_RANK:
            self.assertRegex(listed, rf"(?s)DISABLED_OneRankNccl\.\n(  \w+\n)*  {name}\n")
        for name in ("DISABLED_RanksNccl.", "DISABLED_GpuTiming."):
            self.assertIn(name, listed)

    def test_shapes_that_are_wrong_skipped_or_missing(self):
        for fake, result, words in (("wrong", "FAILED", "dq is off"), ("no test", "FAILED", "has no test"),
                                    ("silent", "FAILED", "nothing was compared"),
                                    ("samples", "FAILED", "no result was looked at for being finite"),
                                    ("skipped: too little memory: 9 bytes", "skipped", "too little memory"),
                                    ("skipped: no CUDA device: none", "FAILED", "sees no device")):
            with self.subTest(fake=fake):
                for row in shapes.shapes(self.context(fake)):
                    if fake == "samples" and row["what"].startswith("small"):
                        continue
                    self.assertEqual(row["result"], result)
                    self.assertIn(words, row["detail"])

    # Ranks on one GPU

    def lost(self, context, number=signal.SIGKILL):
        return list(one_gpu.lost_rank(context, number, "lost", lambda action: action))

    def test_a_lost_rank_is_named(self):
        for number in (signal.SIGKILL, signal.SIGSTOP):
            with self.subTest(signal=number):
                named, free = self.lost(self.context(), number)
                self.assertEqual((named["result"], free["result"]), ("passed", "passed"), (named, free))
                self.assertIn("rank 1 was lost", named["detail"])
                self.assertNotIn(f"--metrics={self.dir}", "\n".join(harness.command_lines()))

    def test_a_rank_that_does_not_end_or_names_nobody(self):
        one_gpu.SECONDS_TO_END, seconds = 1, one_gpu.SECONDS_TO_END
        self.addCleanup(setattr, one_gpu, "SECONDS_TO_END", seconds)
        for fake, words in (("deaf", "did not end within 1 s"), ("dumb", "does not name rank 1"), ("status", "status 0"),
                            ("no start", "rank 0 ended before step")):
            with self.subTest(fake=fake):
                named, _ = self.lost(self.context(fake))
                self.assertEqual(named["result"], "FAILED")
                self.assertIn(words, named["detail"])
                self.assertNotIn(f"--metrics={self.dir}", "\n".join(harness.command_lines()))

    def test_memory_that_does_not_come_back(self):
        tool = self.dir / "smi"
        tool.mkdir()
        for now, result in ((500, "passed"), (564, "passed"), (565, "FAILED")):
            self.script("smi/nvidia-smi", "#!/bin/sh\necho $$ >>" + str(tool / "calls") + "\n[ $(wc -l <" + str(tool / "calls") +
                        ") = 1 ] && echo 500 || echo " + str(now) + "\n")
            (tool / "calls").unlink(missing_ok=True)
            with unittest.mock.patch.dict(os.environ, PATH=f"{tool}:{os.environ['PATH']}"), \
                 unittest.mock.patch.object(one_gpu, "SECONDS_FOR_MEMORY", 1):
                free = self.lost(self.context())[1]
            self.assertEqual(free["result"], result, free)
            self.assertIn(f"{now} MiB", free["detail"])

    def test_one_gpu_is_shown_and_few_blocks_are_taken(self):
        for visible, expected in (("3,4", "3"), ("", "0")):
            context = self.context()
            context.environment["CUDA_VISIBLE_DEVICES"] = visible
            env = one_gpu.shared(context).environment
            self.assertEqual((env["CUDA_VISIBLE_DEVICES"], env["NCCL_MAX_CTAS"], env["NCCL_MULTI_RANK_GPU_ENABLE"]),
                             (expected, "4", "1"))
            self.assertNotIn("FT_EMULATED_MACHINE", env)

    def test_an_nccl_that_refuses_is_no_failure(self):
        context = self.context()
        self.script("ftexec", "#!/bin/sh\necho 'ftexec: Duplicate GPU detected : rank 0 and rank 1' >&2\nexit 75\n")
        rows = list(one_gpu.two_ranks(context))
        self.assertEqual({row["result"] for row in rows}, {"skipped"})
        self.assertEqual(len(rows), 6)
        for row in rows:
            self.assertIn("Duplicate GPU", row["detail"])

    # On an emulated GPU


if __name__ == "__main__":
    unittest.main()
