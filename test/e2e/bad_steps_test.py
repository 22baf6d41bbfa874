"""A loss or gradient that is not finite on one rank: no rank applies the step, it is named, and too many end the run. Where it began: find_nan_test."""

import json
import random
import struct
import unittest

import ftd_files
from harness import BIN, STRATEGIES, EndToEnd, metrics, run

SEQ_LEN, BATCH = 64, 4  # of the debug presets
BAD = 1  # a byte that no text has


class BadSteps(EndToEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.weights = cls.shared / "bad.safetensors"

    def setUp(self):
        super().setUp()
        if not self.weights.exists():
            self.plant()

    def plant(self):
        """Weights of llama, whose head is not tied: the embedding of BAD alone is NaN, so that only a sequence which has
        it makes a bad loss."""
        start = self.shared / "start.safetensors"
        self.check("ftexec", self.plan("llama", "no_shard"), f"--data={self.text}", "--steps=0", f"--save-weights={start}")
        raw = bytearray(start.read_bytes())
        (length,) = struct.unpack("<Q", raw[:8])
        entry = json.loads(raw[8:8 + length])["model.embed_tokens.weight"]
        vocab, hidden = entry["shape"]
        self.assertEqual((entry["dtype"], vocab), ("F32", 256))
        begin = 8 + length + entry["data_offsets"][0] + BAD * hidden * 4
        raw[begin:begin + hidden * 4] = struct.pack(f"<{hidden}f", *[float("nan")] * hidden)
        self.weights.write_bytes(raw)

    def data(self, *places, world):
        """Text with BAD in the sequences that (step, rank) of `places` take without shuffling."""
        text = bytearray(self.text.read_bytes())
        for step, rank in places:
            text[((step * world + rank) * BATCH + 1) * SEQ_LEN + 10] = BAD
        path = self.dir / f"data{len(list(self.dir.iterdir()))}.txt"
        path.write_bytes(text)
        return path

    def run_ranks(self, plan, world, data, *options, steps):
        out = self.dir / "metrics.jsonl"
        out.unlink(missing_ok=True)
        done = run("ftrun", f"--nproc-per-node={world}", "--standalone", BIN / "ftexec", plan, f"--data={data}", "--shuffle=off",
                   f"--init={self.weights}", f"--steps={steps}", f"--metrics={out}", "--progress=off", *options)
        return done, metrics(out)

    def assert_names(self, done, step, ranks, micro_step=""):
        """That the table of embeddings was bad is said where it is read, of the ranks that read that row."""
        self.assertRegex(done.stderr, rf"{step} is not finite: {ranks}, {micro_step}layer \S+, embedding \(forward, train_\w+ \d+\): 64 of \d+ elements "
                         r"are NaN, first at \d+; parameter 'model.embed_tokens.weight' was not finite before")

    def test_no_rank_applies_the_step(self):
        """The weights after the bad step are those before it, and training goes on as if it had not been."""
        world = 2
        data = self.data((2, 1), world=world)
        curves = {}
        for strategy in STRATEGIES:
            with self.subTest(strategy=strategy):
                plan, saved = self.plan("llama", strategy), {}
                for steps in (2, 3, 4, 6):
                    path = self.dir / f"{steps}.safetensors"
                    done, rows = self.run_ranks(plan, world, data, f"--save-weights={path}", steps=steps)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    saved[steps] = path.read_bytes()
                self.assertEqual(saved[2], saved[3])
                self.assertNotEqual(saved[3], saved[4])
                self.assertEqual([row["step"] for row in rows if "skipped" in row], [2])
                self.assertEqual((rows[2]["loss"], rows[2]["loss_nonfinite"], rows[2]["skipped"]), (None, "nan", True))
                self.assertTrue(all(row["loss"] is not None for row in rows if row["step"] != 2))
                lines = [line for line in done.stderr.splitlines() if "step not applied" in line]
                self.assertEqual(len(lines), 1, done.stderr)
                self.assertIn("step 3/6: loss nan: step not applied (1 in a row, the run ends at ", lines[0])
                self.assert_names(done, "step 3/6", "rank 1")
                curves[strategy] = [(row["loss"], row["grad_norm"]) for row in rows], saved[6]
        for strategy, result in curves.items():
            self.assertEqual(result, curves["no_shard"], strategy)

    def test_working_copies_in_host_memory_stay_what_they_are(self):
        """The optimizer makes them anew on the device, in memory that nothing else fills, also where it applies nothing."""
        world, curves = 2, []
        data, source = self.data((1, 0), world=world), self.shared / "llama.mlir"
        self.check("ftc", "model", "llama", "-o", source)
        for number, offload in enumerate(("none", "parameters", "optimizer:step")):
            plan = self.dir / f"{number}.bin"
            self.check("ftc", "compile", source, "--strategy=full_shard", "--mixed-precision=bf16", f"--offload={offload}",
                       "-o", plan)
            _, rows = self.run_ranks(plan, world, data, steps=4)
            self.assertEqual([row["step"] for row in rows if "skipped" in row], [1])
            curves.append([(row["loss"], row["grad_norm"]) for row in rows])
        for curve in curves[1:]:
            self.assertEqual(curve, curves[0])

    def test_every_rank_at_fault_is_named(self):
        world = 3
        done, _ = self.run_ranks(self.plan("llama", "full_shard"), world, self.data((0, 0), (0, 2), world=world), steps=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("step 1/2: loss nan: step not applied", done.stderr)
        self.assert_names(done, "step 1/2", "ranks 0,2")

    def test_too_many_in_a_row_end_the_run(self):
        world, plan = 2, self.plan("llama", "full_shard")
        data = self.data((1, 0), (3, 1), (4, 0), world=world)
        done, rows = self.run_ranks(plan, world, data, "--max-bad-steps=2", steps=8)
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertEqual([row["step"] for row in rows if row.get("skipped")], [1, 3, 4])
        self.assertEqual(rows[-1]["step"], 4)
        self.assertIn("step 5/8: loss nan: step not applied, 2 in a row: training has diverged", done.stderr)
        self.assert_names(done, "step 4/8", "rank 1")
        done, rows = self.run_ranks(plan, world, data, "--max-bad-steps=3", steps=8)
        self.assertEqual((done.returncode, len(rows)), (0, 8), done.stderr)
        done, rows = self.run_ranks(plan, world, data, "--max-bad-steps=1", steps=8)
        self.assertEqual((done.returncode, rows[-1]["step"]), (65, 1), done.stderr)

    def test_all_ranks_end_the_same_way(self):
        world, logs = 2, self.dir / "logs"
        done, _ = self.run_ranks(self.plan("llama", "full_shard"), world, self.data((0, 1), world=world), "--max-bad-steps=1",
                                 f"--log-dir={logs}", steps=3)
        self.assertEqual(done.returncode, 65, done.stderr)
        said = [(logs / f"rank{rank}.log").read_text().splitlines()[-1].split(": ", 2)[2] for rank in range(world)]
        self.assertEqual(said[0], said[1])
        self.assertTrue(said[0].startswith("step 1/3: loss nan: step not applied, 1 in a row: training has diverged; try a smaller --lr; "), said)
        self.assert_names(done, "step 1/3", "rank 1")

    def test_a_bad_micro_step_spoils_its_step(self):
        source, plan, world = self.dir / "m.mlir", self.dir / "m.bin", 2
        self.check("ftc", "model", "llama", "-o", source)
        self.check("ftc", "compile", source, "--strategy=full_shard", "--micro-steps=2", "-o", plan)
        # Micro-step 2 is the first of step 1.
        done, rows = self.run_ranks(plan, world, self.data((2, 0), world=world), steps=4)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([row["step"] for row in rows if row.get("skipped")], [1])
        self.assertIn("step 2/4: loss nan: step not applied", done.stderr)
        self.assert_names(done, "step 2/4", "rank 0", "micro-step 1, ")

    def test_packed_documents_of_which_not_all_counts(self):
        """A token that is no target spoils its step all the same; the sequence that it was packed into says which rank's and which step's."""
        draw, source, plan, world = random.Random(3), self.dir / "m.mlir", self.dir / "p.bin", 2
        documents = [[draw.randrange(32, 127) for _ in range(draw.randrange(5, 60))] for _ in range(150)]
        documents[40][3] = BAD
        mask = [int(draw.random() < 0.7) for document in documents for _ in document]
        data = ftd_files.write(self.dir / "d.ftd", documents, mask)
        (place,) = [i for i, row in enumerate(ftd_files.packed(documents, mask, SEQ_LEN)) if BAD in row["tokens"]]
        step, rank = place // (BATCH * world), place // BATCH % world
        self.check("ftc", "model", "llama", "--packed", "-o", source)
        self.check("ftc", "compile", source, "--strategy=full_shard", "--mixed-precision=bf16", "-o", plan)
        done, rows = self.run_ranks(plan, world, data, steps=step + 2)
        self.assertEqual([row["step"] for row in rows if row.get("skipped")], [step])
        self.assert_names(done, f"step {step + 1}/{step + 2}", f"rank {rank}")

    def test_overflows_of_fp16_find_the_scale(self):
        """They are no bad steps: the run survives them with --max-bad-steps=1."""
        source, plan, out = self.dir / "m.mlir", self.dir / "m.bin", self.dir / "m.jsonl"
        self.check("ftc", "model", "gpt2", "-o", source)
        self.check("ftc", "compile", source, "--strategy=full_shard", "--mixed-precision=fp16", "--initial-scale-power=24",
                   "-o", plan)
        done = run("ftrun", "--nproc-per-node=2", "--standalone", BIN / "ftexec", plan, f"--data={self.text}", "--steps=20",
                   "--max-bad-steps=1", f"--metrics={out}", "--progress=off")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = metrics(out)
        self.assertEqual(rows[0]["loss_scale"], 2.0 ** 24)
        self.assertTrue(rows[0]["skipped"])
        for row, after in zip(rows, rows[1:]):
            self.assertEqual(after["loss_scale"], row["loss_scale"] / (2 if row.get("skipped") else 1))
        self.assertNotIn("skipped", rows[-1])


if __name__ == "__main__":
    unittest.main()
