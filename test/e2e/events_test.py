"""--log-dir: curves and texts for TensorBoard, and logs that a restart goes on with."""

import math
import os
import re
import struct
import time
import unittest

import event_files
from harness import BIN, EndToEnd, environment, metrics, run

CURVES = {"loss": "train/loss", "grad_norm": "train/grad_norm", "lr": "train/lr", "loss_scale": "train/loss_scale",
          "tokens_per_s": "throughput/tokens_per_s", "samples_per_s": "throughput/samples_per_s", "step_ms": "throughput/step_ms",
          "mfu": "throughput/mfu", "utilization": "throughput/utilization", "exposed_ms": "communication/exposed_ms",
          "arena_bytes": "memory/arena_bytes", "host_arena_bytes": "memory/host_arena_bytes", "eval_loss": "eval/loss"}
NOT_CURVES = {"step", "bytes", "host_bytes", "instruction_set", "eval_tokens", "skipped"}


def as_float(number):
    try:
        return struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)


def expected(row):
    """The curves' points that belong to a line of --metrics."""
    points = {}
    for name, value in row.items():
        if name in NOT_CURVES or name.endswith("_nonfinite"):
            continue
        points[CURVES[name]] = as_float(float(row[name + "_nonfinite"]) if value is None else value)
    if "eval_loss" not in row:
        points["train/skipped"] = float(row.get("skipped", False))
    return points


def unescaped(cell):
    """What a cell of a table in markdown shows."""
    return re.sub(r"\\(.)", r"\1", cell).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def settings_of(text):
    rows = [re.findall(r"\|((?:\\.|[^|\\])*)", line) for line in text.splitlines()[2:]]
    return {unescaped(row[0].strip()): unescaped(row[1].strip()) for row in rows}


class Events(EndToEnd):
    def setUp(self):
        super().setUp()
        self.logs, self.metrics = self.dir / "logs", self.dir / "m.jsonl"

    def ranks(self, world, plan, *options, steps=6, status=0, data=None, env=None):
        done = run("ftrun", f"--nproc-per-node={world}", "--standalone", BIN / "ftexec", plan, f"--data={data or self.text}",
                   f"--steps={steps}", "--threads=1", "--progress=off", f"--log-dir={self.logs}", f"--metrics={self.metrics}", *options,
                   env=env)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def alone(self, *options, **extra):
        return self.check("ftexec", self.plan("gpt2", "full_shard"), f"--data={self.text}", "--steps=2", "--threads=1", "--progress=off",
                          f"--log-dir={self.logs}", *options, env=environment(**extra))

    def file(self, index=0):
        return event_files.paths(self.logs)[index]

    def assert_curves(self):
        """Every number of --metrics, and no other but the resident memory."""
        begin, *events = event_files.read(self.file())
        self.assertEqual((begin.file_version, begin.step), ("brain.Event:2", 0))
        self.assertTrue(events[0].session_start)
        points, rows = [event for event in events if event.scalars], metrics(self.metrics)
        self.assertEqual([point.step for point in points], [row["step"] for row in rows])
        for point, row in zip(points, rows):
            resident = point.scalars.pop("memory/resident_bytes", 1 << 30)
            self.assertTrue(1 << 20 < resident < 1 << 40)
            want = expected(row)
            self.assertEqual(list(sorted(point.scalars)), list(sorted(want)))
            for tag, value in want.items():
                same = math.isnan(value) and math.isnan(point.scalars[tag]) or value == point.scalars[tag]
                self.assertTrue(same, f"step {row['step']}: {tag} is {point.scalars[tag]}, not {value}")
        times = [event.wall_time for event in events]
        self.assertEqual(times, sorted(times))
        self.assertLess(abs(times[-1] - time.time()), 600)
        return events

    def test_every_number_of_the_metrics(self):
        self.ranks(2, self.plan("gpt2", "full_shard"), f"--eval-data={self.text}", "--eval-every=2", "--eval-steps=1")
        events = self.assert_curves()
        self.assertEqual(sum("eval/loss" in event.scalars for event in events), 3)
        self.assertEqual(len(event_files.paths(self.logs)), 1)
        self.assertEqual({path.name for path in self.logs.iterdir()}, {"rank0.log", "rank1.log", self.file().name})
        self.assertRegex(self.file().name, r"^events\.out\.tfevents\.\d{10}\.[\w-]+\.\d+\.0$")

    def test_optional_numbers(self):
        source, plan = self.dir / "m.mlir", self.dir / "m.bin"
        self.check("ftc", "model", "llama", "-o", source)
        self.check("ftc", "compile", source, "--strategy=full_shard", "--mixed-precision=fp16", "--offload=optimizer", "-o", plan)
        self.ranks(2, plan)
        self.assertIn("loss_scale", metrics(self.metrics)[0])
        self.assertIn("host_arena_bytes", metrics(self.metrics)[0])
        text = next(event.texts["run/memory"] for event in self.assert_curves() if "run/memory" in event.texts)
        self.assertIn("Host memory of each rank", text)

    def test_numbers_that_are_not_finite(self):
        self.ranks(1, self.plan("gpt2", "full_shard"), "--lr=1e38", "--max-bad-steps=2", steps=50, status=65)
        self.assertTrue(any(row.get("skipped") and row["loss"] is None for row in metrics(self.metrics)))
        self.assert_curves()

    def test_no_steps_but_an_evaluation(self):
        self.ranks(1, self.plan("gpt2", "full_shard"), f"--eval-data={self.text}", "--eval-steps=1", steps=0)
        self.assertEqual([row["step"] for row in metrics(self.metrics)], [-1])
        self.assert_curves()

    def test_texts(self):
        data = self.dir / "a|b `c` <i>*d*_e_\\ [f](g)\n&amp; \x1b[1m\u00e9.txt"
        data.write_bytes(self.text.read_bytes())
        plan = self.plan("llama", "shard_grad_op")
        self.ranks(2, plan, "--lr=0.002", "--lr-schedule=cosine", "--min-lr=1e-5", "--warmup-steps=2", "--seed=7", data=data)
        texts = [event for event in event_files.read(self.file()) if event.texts]
        self.assertEqual([(list(event.texts), event.step) for event in texts], [(["run/settings"], 0), (["run/memory"], 0)])
        settings = settings_of(texts[0].texts["run/settings"])
        shown = str(data).replace("\n", "\\n").replace("\x1b", "\\x1b")
        self.assertTrue(settings["data"].startswith(f"{shown} (text, "), settings["data"])
        self.assertIn(f"'--data={shown}'", settings["command line"])
        self.assertEqual(settings["strategy"], "shard_grad_op")
        self.assertEqual(settings["seed"], "7")
        self.assertEqual(settings["learning rate"], "0.002, cosine to 1e-05 at step 6, from 0 in 2 steps")
        self.assertEqual(settings["steps"], "6, from step 0")
        digest = re.search(r"plan ([0-9a-f]+)$", (self.logs / "rank0.log").read_text().splitlines()[0])[1]
        self.assertEqual(settings["plan"], f"{plan}, hash {digest}")
        # The tables of ftc explain, to the letter.
        memory = re.fullmatch(r"```\n(.*)```\n", texts[1].texts["run/memory"], re.DOTALL)[1]
        self.assertIn(memory, self.check("ftc", "explain", plan, "--world-size=2").stdout)
        self.assertIn("arena", memory)

    def test_a_restart_goes_on(self):
        self.logs.mkdir()
        (self.logs / "rank0.log").write_text("a line of a rank that was kil")
        self.alone()
        before = (self.logs / "rank0.log").read_text()
        self.assertTrue(before.startswith("a line of a rank that was kil\n20"), before)
        self.alone(RANK=0, WORLD_SIZE=1, LOCAL_RANK=0, LOCAL_WORLD_SIZE=1, TORCHELASTIC_RESTART_COUNT=3)
        after = (self.logs / "rank0.log").read_text()
        self.assertTrue(after.startswith(before))
        begin = r"(?m)^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ: rank 0 of 1 begins, attempt (\d+), at step 0; plan [0-9a-f]{16}$"
        self.assertEqual(re.findall(begin, after), ["0", "3"])
        self.assertEqual(after.count("step 2/2"), 2)
        # Runs in the same second, too, are read in their order; each begins with the step it begins at.
        files = event_files.paths(self.logs)
        self.assertEqual([os.stat(path).st_mtime_ns for path in files], sorted(os.stat(path).st_mtime_ns for path in files))
        for path in files:
            events = event_files.read(path)
            self.assertEqual([(event.session_start, event.step) for event in events[:2]], [(False, 0), (True, 0)])
        self.assertEqual(settings_of(event_files.read(files[1])[2].texts["run/settings"])["attempt"], "3")

    def test_a_clock_that_went_back(self):
        self.logs.mkdir()
        (self.logs / "events.out.tfevents.4000000000.other.1.0").touch()
        self.alone()
        self.assertIn(".4000000001.", self.file(1).name)


if __name__ == "__main__":
    unittest.main()
