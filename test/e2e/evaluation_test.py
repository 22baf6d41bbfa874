"""Evaluation: every sequence once, whatever the ranks; training does not notice it."""

import json
import unittest

import ftd_files
from harness import BIN, STRATEGIES, EndToEnd, metrics, run

SEQ_LEN = 64  # of the debug presets


class Evaluation(EndToEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # 31 sequences of other text than is trained on: no number of ranks x 4 divides them.
        text = cls.text.read_bytes()
        cls.held_out, cls.sequences = cls.shared / "held-out.txt", 31
        cls.held_out.write_bytes(text[-(cls.sequences * SEQ_LEN + 1):])

    def rows(self, plan, world, *options, steps):
        """All metrics, split in those of steps and of evaluations."""
        out = self.dir / "metrics.jsonl"
        out.unlink(missing_ok=True)
        self.check("ftrun", f"--nproc-per-node={world}", "--standalone", BIN / "ftexec", plan, f"--data={self.text}",
                   f"--steps={steps}", f"--metrics={out}", "--progress=off", *options)
        rows = metrics(out)
        return [row for row in rows if "loss" in row], [row for row in rows if "eval_loss" in row]

    def evaluate(self, plan, world, *options, steps=0):
        return self.rows(plan, world, f"--eval-data={self.held_out}", *options, steps=steps)[1]

    def test_any_number_of_ranks_sees_every_sequence_once(self):
        plan = self.plan("gpt2", "full_shard")
        losses = {}
        for world in (1, 2, 3, 4):
            (row,) = self.evaluate(plan, world)
            self.assertEqual(row["eval_tokens"], self.sequences * SEQ_LEN)
            losses[world] = row["eval_loss"]
        # A mean over other batches: equal up to the rounding of each batch's fp32 mean.
        for world, loss in losses.items():
            self.assertLess(abs(loss / losses[1] - 1), 1e-6, losses)

    def test_is_the_loss_that_training_begins_with(self):
        """On the sequences of the first step, before any update."""
        for model in ("gpt2", "llama"):
            plan = self.plan(model, "full_shard")
            first = self.train(plan, 1, "--shuffle=off", steps=1)[0]["loss"]
            (row,) = self.rows(plan, 1, f"--eval-data={self.text}", "--eval-steps=1", steps=0)[1]
            self.assertLess(abs(row["eval_loss"] / first - 1), 1e-6)
            self.assertEqual(row["eval_tokens"], 4 * SEQ_LEN)

    def test_changes_no_bit_of_training(self):
        for model in ("gpt2", "free_transformer"):
            for strategy in STRATEGIES:
                with self.subTest(model=model, strategy=strategy):
                    plan, saved = self.plan(model, strategy), []
                    curves = []
                    for options in ((), (f"--eval-data={self.held_out}", "--eval-every=1")):
                        path = self.dir / f"{len(saved)}.safetensors"
                        steps = self.rows(plan, 2, f"--save-weights={path}", *options, steps=6)[0]
                        curves.append([(row["step"], row["loss"], row["grad_norm"], row["lr"]) for row in steps])
                        saved.append(path.read_bytes())
                    self.assertEqual(*curves)
                    self.assertEqual(*saved)

    def test_strategies_give_the_same_bits(self):
        for model in ("gpt2", "llama", "free_transformer"):
            with self.subTest(model=model):
                results = [self.evaluate(self.plan(model, strategy), 3, "--eval-every=2", steps=5) for strategy in STRATEGIES]
                self.assertEqual([row["step"] for row in results[0]], [1, 3, 4])
                self.assertEqual(results, results[:1] * len(results))

    def test_a_model_that_learns_gets_better(self):
        rows = self.evaluate(self.plan("gpt2", "full_shard"), 1, "--eval-every=40", "--lr=0.003", steps=80)
        self.assertEqual([row["step"] for row in rows], [39, 79])
        self.assertLess(rows[1]["eval_loss"], rows[0]["eval_loss"])

    def test_an_evaluation_repeats_itself(self):
        """With random numbers in the model, too: their counter is the batch's number."""
        plan = self.plan("free_transformer", "full_shard")
        rows = self.evaluate(plan, 2, "--lr=0", "--eval-every=1", steps=3)
        self.assertEqual(len({row["eval_loss"] for row in rows}), 1, rows)

    def test_progress_shows_it(self):
        done = self.check("ftexec", self.plan("gpt2", "full_shard"), f"--data={self.text}", f"--eval-data={self.held_out}",
                          "--steps=2")
        self.assertRegex(done.stdout, rf"step 2/2  eval loss \d\.\d+  over {self.sequences * SEQ_LEN} tokens\n")

    def test_targets_of_which_none_counts(self):
        """No loss rather than one that is no number; the checkpoint has none either."""
        plan, masked, out = self.plan("gpt2", "full_shard"), self.dir / "masked.ftd", self.dir / "m.jsonl"
        document = [5] * (SEQ_LEN + 1)
        masked.write_bytes(ftd_files.contents([document], mask=[0] * len(document)))
        for world in (1, 2):
            done = self.check("ftrun", f"--nproc-per-node={world}", "--standalone", BIN / "ftexec", plan, f"--data={self.text}",
                              f"--eval-data={masked}", "--steps=2", f"--metrics={out}", f"--checkpoint-dir={self.dir}/c{world}")
            self.assertEqual(metrics(out)[-1], {"step": 1, "eval_loss": None, "eval_tokens": 0})
            self.assertEqual([line.partition("ftexec: ")[2] for line in done.stderr.splitlines()],
                             ["step 2/2: the evaluation has no loss: none of its targets counts"])
            self.assertNotIn("nan", done.stdout)
            self.assertNotIn("eval_loss", json.loads((self.dir / f"c{world}/step-00000002/manifest.json").read_text()))

    def test_bad_data_is_refused_before_the_run(self):
        plan, empty, metrics_file = self.plan("gpt2", "full_shard"), self.dir / "empty.txt", self.dir / "m.jsonl"
        empty.write_bytes(b"")
        for path, status in ((empty, 65), (self.dir / "absent.txt", 74)):
            done = run("ftexec", plan, f"--data={self.text}", f"--eval-data={path}", f"--metrics={metrics_file}", "--steps=1")
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (status, 1), done.stderr)
            self.assertIn(path.name, done.stderr)
            self.assertFalse(metrics_file.exists())


if __name__ == "__main__":
    unittest.main()
