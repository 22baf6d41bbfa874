"""A run that is stopped and resumed, at any step and any number of times, is to the bit the run that was not.

All metrics but times, the weights at the end and all that decides the next step are compared. Every pair of values of two
options occurs in some run; with FT_TEST_THOROUGH=1 each of those is also stopped after every step.
"""

import json
import os
import signal
import struct
import subprocess
import time
import unittest

from checkpoint_runs import SEQ, THOROUGH, CheckpointRuns, checkpoints, manifest
from covering import covering_rows
from harness import BIN, children, environment

STEPS = 8
OPTIONS = {
    "model": ("gpt2", "llama", "free_transformer"),
    "layout": ("1 no_shard", "2 zero1", "2 shard_grad_op", "3 full_shard", "4 hybrid_shard", "4 hybrid_shard_zero2"),
    "precision": ("no", "bf16", "fp16", "bf16 alone"),
    "dropout": (0, 0.1),
    "micro_steps": (1, 2),
    "offload": ("none", "optimizer", "optimizer:step", "activations", "parameters"),
    "evaluation": (0, 3),
    "data": ("text", "short", "in order", "weighted"),
    "frozen": ("", "*.0.*"),
    "type": ("full", "sharded", "local"),
    "async": ("on", "off"),
    "schedule": ("constant", "cosine"),
    "optimizer": ("adamw", "sgd"),
    # After which steps the run saves, and from which of them it goes on, one time after the other.
    "stops": ("1:1,4", "2:6,2", "3:3"),
}
# Gradients overflow at first, and again whenever the scale has grown.
FP16 = ("--mixed-precision=fp16", "--initial-scale-power=18", "--loss-scale-window=2")


class Resume(CheckpointRuns):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        text = cls.text.read_bytes()
        cls.short = cls.shared / "short.txt"
        cls.short.write_bytes(text[:5 * SEQ + 1])  # an epoch ends in every other step
        cls.other = cls.shared / "other.txt"
        cls.other.write_bytes(text[3000:3000 + 7 * SEQ + 1])

    def flags(self, row):
        world, strategy = row["layout"].split()
        flags = [f"--strategy={strategy}", f"--micro-steps={row['micro_steps']}", f"--offload={row['offload']}",
                 f"--optimizer={row['optimizer']}"]
        if row["optimizer"] == "sgd":
            flags.append("--momentum=0.9")
        if row["frozen"]:
            flags.append(f"--frozen={row['frozen']}")
        flags += {"no": (), "bf16": ("--mixed-precision=bf16",), "fp16": FP16,
                  "bf16 alone": ("--mixed-precision=bf16", "--master-weights=off", "--stochastic-rounding")}[row["precision"]]
        mesh = ["--mesh=replica:2,shard:2"] if strategy.startswith("hybrid") else []
        return int(world), flags + ([f"--world-size={world}", *mesh] if mesh else []), mesh

    def options(self, row, mesh):
        options = [*mesh, f"--steps={STEPS}", "--lr=0.01"]
        if row["data"] == "in order":
            options.append("--shuffle=off")
        if row["schedule"] == "cosine":
            options += ["--lr-schedule=cosine", "--warmup-steps=3", "--min-lr=0.001"]
        if row["evaluation"]:
            options += [f"--eval-every={row['evaluation']}", f"--eval-data={self.other}", "--eval-steps=2"]
        return options

    def data(self, row):
        return {"text": self.text, "in order": self.short, "short": self.short,
                "weighted": f"{self.short}:0.7,{self.other}:0.3"}[row["data"]]

    def outcome(self, folder, rows=None):
        """All that must be equal at the end of two runs."""
        return {"rows": self.rows(folder / "m.jsonl") if rows is None else rows, "weights": (folder / "w").read_bytes()}

    def last(self, folder):
        """What of the last checkpoint tells how the run would go on. Files are compared too: equal states are equal files."""
        path = checkpoints(folder)[STEPS]
        said = manifest(path)
        return {**{key: said.get(key) for key in ("position", "health", "run", "files", "eval_loss")},
                "bytes": {file.name: file.read_bytes() for file in path.iterdir() if file.name != "manifest.json"}}

    def run_row(self, row):
        world, compiled, mesh = self.flags(row)
        plan = self.tiny(row["model"], *compiled, model_options=("--batch=1", f"--dropout={row['dropout']}"))
        every, stops = row["stops"].split(":")
        alone, folder = self.dir / "alone", self.dir / "stopped"
        for made in (alone, folder):
            made.mkdir()
        outputs = lambda at: (f"--metrics={at / 'm.jsonl'}", f"--save-weights={at / 'w'}")
        options, data = self.options(row, mesh), self.data(row)
        saves = (f"--checkpoint-dir={folder}", f"--save-every={every}", f"--state-dict-type={row['type']}",
                 f"--async-save={row['async']}")
        self.go(plan, world, *options, *outputs(alone), data=data)
        expected = self.outcome(alone)
        self.assertEqual(len([r for r in expected["rows"] if "loss" in r]), STEPS)
        skipped = sum(r.get("skipped", False) for r in expected["rows"])
        if row["precision"] == "fp16":
            self.assertIn(skipped, range(1, STEPS), "some overflow, not all")
        self.go(plan, world, *options, *outputs(folder), *saves, data=data)
        self.assertEqual(self.outcome(folder), expected)
        last = self.last(folder)
        for stop in (range(STEPS - 1, 0, -1) if THOROUGH and every == "1" else map(int, stops.split(","))):
            self.cut(folder, stop)
            done = self.go(plan, world, *options, *outputs(folder), *saves, "--resume=auto", data=data)
            self.assertIn(f"resumed from '{folder}/step-{stop:08}' after {stop} step", done.stdout)
            self.assertNotIn("not as it was", done.stdout)
            self.assertEqual(self.outcome(folder), expected, f"resumed after step {stop}")
            self.assertEqual(self.last(folder), last, f"resumed after step {stop}")

    def test_every_pair_of_options(self):
        for number, row in enumerate(covering_rows(OPTIONS)):
            with self.subTest(**row):
                self.dir = self.dir.parent / f"row{number}"
                self.dir.mkdir()
                self.run_row(row)

    def test_after_any_step(self):
        """One run with much of everything, stopped after each of its steps."""
        row = {"model": "gpt2", "layout": "2 zero1", "precision": "fp16", "dropout": 0.1, "micro_steps": 2, "offload": "optimizer",
               "evaluation": 3, "data": "short", "frozen": "", "type": "full", "async": "on", "schedule": "cosine",
               "optimizer": "adamw", "stops": f"1:{','.join(str(k) for k in range(STEPS - 1, 0, -1))}"}
        self.run_row(row)

    def kill(self, command, metrics_file, lines):
        """SIGKILL to all ranks once so many steps are in the metrics."""
        launcher = subprocess.Popen([str(BIN / command[0]), *map(str, command[1:])], env=environment(), stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        try:
            end = time.monotonic() + 60
            while not metrics_file.exists() or metrics_file.read_bytes().count(b"\n") < lines:
                self.assertIsNone(launcher.poll(), "it ended before it was killed")
                self.assertLess(time.monotonic(), end)
                time.sleep(0.002)
            for pid in children(launcher.pid):
                os.kill(pid, signal.SIGKILL)
            self.assertNotEqual(launcher.wait(60), 0)
        finally:
            launcher.kill()
            launcher.wait()

    def test_killed_and_killed_again(self):
        """In the middle of whatever it does, saving included; with --resume=auto from the beginning, as a launcher restarts it."""
        plan, steps = self.tiny("gpt2", "--strategy=full_shard"), 120
        options = [f"--steps={steps}", "--lr=0.01", "--lr-schedule=linear", "--warmup-ratio=0.2"]
        alone, out, folder = self.dir / "alone.jsonl", self.dir / "m.jsonl", self.dir / "c"
        weights = [self.dir / name for name in ("alone.w", "w")]
        self.go(plan, 2, *options, f"--metrics={alone}", f"--save-weights={weights[0]}")
        again = [*options, f"--metrics={out}", f"--checkpoint-dir={folder}", "--save-every=2", "--keep=2", "--resume=auto",
                 f"--save-weights={weights[1]}"]
        for lines in (7, 40, 41, 83):
            self.kill(self.command(plan, 2, *again), out, lines)
            whole = [step for step, path in checkpoints(folder).items() if (path / "manifest.json").exists()]
            # Saving lags behind by one, and of two kept ones the elder goes after the newer is there.
            self.assertTrue(any(lines - 6 <= step for step in whole) or lines < 8, whole)
        done = self.go(plan, 2, *again)
        self.assertIn("resumed from", done.stdout)
        self.assertEqual(self.rows(out), self.rows(alone))
        self.assertEqual(*(path.read_bytes() for path in weights))
        self.assertEqual(sorted(checkpoints(folder)), [118, 120])

    def plant(self, world, *steps):
        """Weights and data with which the loss of the last rank is NaN at these steps: the embedding of one letter is NaN."""
        weights, bad = self.dir / "bad.safetensors", 1
        self.go(self.tiny("llama", "--strategy=no_shard"), 1, "--steps=0", f"--save-weights={weights}")
        raw = bytearray(weights.read_bytes())
        (length,) = struct.unpack("<Q", raw[:8])
        entry = json.loads(raw[8:8 + length])["model.embed_tokens.weight"]
        self.assertEqual((entry["dtype"], entry["shape"][0]), ("F32", 256))
        begin, size = 8 + length + entry["data_offsets"][0], 4 * entry["shape"][1]
        raw[begin + bad * size:begin + (bad + 1) * size] = struct.pack("<f", float("nan")) * entry["shape"][1]
        weights.write_bytes(raw)
        text, data = bytearray(self.text.read_bytes()), self.dir / "bad.txt"
        for step in steps:
            text[((step + 1) * world - 1) * SEQ + 5] = bad
        data.write_bytes(text)
        return ["--shuffle=off", f"--init={weights}"], data

    def not_applied(self, done):
        """What rank 0 says of such steps; the others have a word about the end alone. Where a row began is left out: who goes on in the middle of one looks
        at the first step that it meets."""
        return [line.split("; step ")[0] for line in done.stderr.splitlines() if line.startswith("[rank 0]") and "not applied" in line]

    def test_skipped_steps_across_a_resume(self):
        """The rate counts applied steps; how many were bad in a row is remembered, and how many may be."""
        world, plan = 2, self.tiny("llama", "--strategy=zero1")
        planted, data = self.plant(world, 1, 3, 4, 6, 7, 8)
        options = [*planted, "--lr=0.01", "--lr-schedule=linear", "--warmup-steps=3", "--steps=12"]
        for limit, status in ((4, 0), (3, 65), (2, 65)):
            with self.subTest(limit=limit):
                alone, out, folder = (self.dir / f"{name}{limit}" for name in ("alone", "m", "c"))
                expected = self.attempt(plan, world, *options, f"--max-bad-steps={limit}", f"--metrics={alone}", data=data)
                self.assertEqual(expected.returncode, status, expected.stderr)
                said = self.not_applied(expected)
                self.assertEqual(len(said), {4: 6, 3: 6, 2: 3}[limit])
                saves = [f"--metrics={out}", f"--checkpoint-dir={folder}", "--save-every=1", "--async-save=off"]
                done = self.attempt(plan, world, *options, f"--max-bad-steps={limit}", *saves, data=data)
                self.assertEqual((done.returncode, self.rows(out)), (status, self.rows(alone)))
                for stop in sorted(set(checkpoints(folder)) - {12}, reverse=True):
                    self.cut(folder, stop)
                    done = self.attempt(plan, world, *options, *saves, "--resume=auto", data=data)
                    self.assertEqual((done.returncode, self.rows(out)), (status, self.rows(alone)), f"resumed after {stop}")
                    again = self.not_applied(done)
                    self.assertEqual(again, said[len(said) - len(again):])


if __name__ == "__main__":
    unittest.main()
