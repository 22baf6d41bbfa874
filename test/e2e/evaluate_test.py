"""--evaluate, and plans of ftc compile --evaluate: the numbers of a training plan's evaluation, without what trains."""

import math
import random
import re
import struct
import unittest

import ftd_files
from harness import BIN, STRATEGIES, EndToEnd, metrics, run
from signatures_test import MODEL, examples, write

SEQ_LEN = 64  # of the debug presets


class Evaluate(EndToEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        text = cls.text.read_bytes()
        cls.held_out, cls.sequences = cls.shared / "held-out.txt", 31  # no number of ranks x 4 divides them
        cls.held_out.write_bytes(text[-(cls.sequences * SEQ_LEN + 1):])

    def compile(self, model, strategy, *options):
        """A plan that trains and one that evaluates, of a debug preset."""
        plans = []
        source = self.shared / f"{model}.mlir"
        if not source.exists():
            self.check("ftc", "model", model, "-o", source)
        for kind in ((), ("--evaluate",)):
            path = self.shared / ("-".join([model, strategy, *options, *kind]).replace("=", "_").replace(":", "_") + ".bin")
            if not path.exists():
                self.check("ftc", "compile", source, f"--strategy={strategy}", *options, *kind, "-o", path)
            plans.append(path)
        return plans

    def evaluate(self, plan, world, *options, data=None):
        """The line of metrics of a run with --evaluate, and what it printed."""
        out = self.dir / "evaluation.jsonl"
        done = self.check("ftrun", f"--nproc-per-node={world}", "--standalone", BIN / "ftexec", plan, "--evaluate",
                          f"--data={data or self.held_out}", f"--metrics={out}", *options)
        (row,) = metrics(out)
        return row, done.stdout

    def trained(self, plan, world, *options, steps=4):
        """A checkpoint, and the evaluation after the last step."""
        folder, out = self.dir / f"checkpoints-{world}", self.dir / "training.jsonl"
        self.check("ftrun", f"--nproc-per-node={world}", "--standalone", BIN / "ftexec", plan, f"--data={self.text}",
                   f"--eval-data={self.held_out}", f"--steps={steps}", f"--checkpoint-dir={folder}", f"--metrics={out}",
                   "--progress=off", *options)
        return folder / f"step-{steps:08}", metrics(out)[-1]["eval_loss"]

    def test_numbers_are_those_of_training_on_any_ranks_and_strategy(self):
        for options in ((), ("--mixed-precision=bf16",), ("--mixed-precision=fp16",), ("--mixed-precision=bf16", "--master-weights=off")):
            with self.subTest(options=options):
                by_strategy = set()
                for strategy in STRATEGIES:
                    training, evaluation = self.compile("gpt2", strategy, *options)
                    for world in (1, 3):
                        checkpoint, loss = self.trained(training, world)
                        for plan in (training, evaluation):
                            row, text = self.evaluate(plan, world, f"--resume={checkpoint}")
                            self.assertEqual(row["eval_loss"], loss)
                            self.assertEqual(row["eval_tokens"], self.sequences * SEQ_LEN)
                            self.assertEqual(row["eval_perplexity"], math.exp(loss))
                            self.assertIn(f"perplexity {math.exp(loss):.6g}  over {self.sequences * SEQ_LEN} tokens", text)
                        by_strategy.add((world, loss))
                self.assertEqual(len(by_strategy), 2, "strategies differ")

    def test_checkpoints_of_any_type_strategy_and_optimizer_load(self):
        _, evaluation = self.compile("gpt2", "full_shard")
        _, whole = self.compile("gpt2", "no_shard")
        for kind, training in (("full", self.compile("gpt2", "no_shard", "--optimizer=muon")[0]),
                               ("sharded", self.compile("gpt2", "full_shard", "--optimizer=adafactor")[0]),
                               ("local", self.compile("gpt2", "full_shard")[0])):
            with self.subTest(kind=kind):
                checkpoint, loss = self.trained(training, 2, f"--state-dict-type={kind}")
                for plan in (evaluation, whole):
                    row, _ = self.evaluate(plan, 2, f"--resume={checkpoint}")
                    self.assertEqual(row["eval_loss"], loss)
                    alone, _ = self.evaluate(plan, 1, f"--resume={checkpoint}")
                    self.assertLess(abs(alone["eval_loss"] / loss - 1), 1e-6)  # a mean over other batches
        other = self.compile("gpt2", "full_shard", "--optimizer=lion")[0]
        self.assertEqual(self.evaluate(other, 2, f"--resume={checkpoint}")[0]["eval_loss"], loss)

    def test_weights_of_a_file_and_the_newest_checkpoint(self):
        training, evaluation = self.compile("llama", "full_shard")
        weights = self.dir / "weights.safetensors"
        checkpoint, loss = self.trained(training, 2, f"--save-weights={weights}")
        for options in ((f"--init={weights}",), ("--resume=auto", f"--checkpoint-dir={checkpoint.parent}")):
            self.assertEqual(self.evaluate(evaluation, 2, *options)[0]["eval_loss"], loss)

    def test_memory_is_that_of_explain_without_what_trains(self):
        weights = self.dir / "weights.safetensors"
        for options in ((), ("--mixed-precision=bf16",), ("--offload=parameters",), ("--mixed-precision=bf16", "--offload=parameters,optimizer"),
                        ("--prefetch=auto",), ("--micro-steps=3", "--remat=full")):
            for strategy in (*STRATEGIES, "hybrid_shard"):
                with self.subTest(strategy=strategy, options=options):
                    training, evaluation = self.compile("llama", strategy, *options)
                    if not weights.exists():
                        self.trained(training, 1, f"--save-weights={weights}")
                    explained, whole = self.explain(evaluation, 2), self.explain(training, 2)
                    rest = explained["at_rest"]
                    self.assertEqual((rest["gradients"], rest["optimizer_state"], explained["snapshot_bytes"]), (0, 0, None))
                    self.assertLess(explained["arena_bytes"], whole["arena_bytes"])
                    row, text = self.evaluate(evaluation, 2, f"--init={weights}")
                    self.assertIn(f"arena {explained['arena_bytes']} bytes", text)
                    self.assertEqual(row["eval_loss"], self.evaluate(training, 2, f"--init={weights}")[0]["eval_loss"])
                    self.check("ftc", "verify", evaluation)

    def test_weights_in_16_bits_are_all_there_is(self):
        for strategy, ranks in (("no_shard", 1), ("full_shard", 2)):
            rest = self.explain(self.compile("llama", strategy, "--mixed-precision=bf16")[1], 2)["at_rest"]
            whole = self.explain(self.compile("llama", strategy)[1], 2)["at_rest"]
            self.assertEqual(rest["parameters"] * 2, whole["parameters"])
            self.assertEqual(rest["of_optimizer_state_master"], 0)

    def test_what_a_classifier_has_right_is_what_its_own_output_says(self):
        source, data = self.dir / "classifier.mlir", write(self.dir / "data.safetensors", examples(100))
        source.write_text(MODEL.read_text().replace('"accuracy"', '"right"'))
        for strategy, options in (("no_shard", ()), ("full_shard", ("--mixed-precision=bf16",))):
            plans = []
            for kind in ((), ("--evaluate",)):
                plans.append(self.dir / f"{strategy}{len(plans)}.bin")
                self.check("ftc", "compile", source, f"--strategy={strategy}", *options, *kind, "-o", plans[-1])
            folder = self.dir / f"checkpoints-{strategy}"
            self.check("ftexec", plans[0], f"--data={data}", "--steps=9", "--lr=0.01", f"--checkpoint-dir={folder}", "--progress=off")
            rows = [self.evaluate(plan, 1, "--resume=auto", f"--checkpoint-dir={folder}", data=data)[0] for plan in plans]
            accuracy = rows[1].pop("eval_accuracy")
            self.assertEqual(*rows)
            self.assertNotIn("eval_perplexity", rows[1])
            self.assertEqual(accuracy, rows[1]["eval_right"])
            self.assertTrue(0 < accuracy < 1)
            self.assertEqual(rows[1]["eval_tokens"], 96)  # whole batches: the model's own outputs may be means over them

    def test_every_example_of_a_classifier_of_text_is_evaluated(self):
        """Its rows can be filled up, as the accuracy counts labels alone."""
        self.check("ftc", "model", "bert_classifier", "--batch=4", "-o", self.dir / "m.mlir")
        # Without the output that the model has itself, which may be a mean over the batch.
        text = re.sub(r'-> \(tensor<f32>, .*"accuracy"}\)', "-> tensor<f32>", (self.dir / "m.mlir").read_text())
        (self.dir / "m.mlir").write_text(re.sub(r"return (%\w+), .*", r"return \1 : tensor<f32>", text))
        draw, count, length = random.Random(3), 13, SEQ_LEN
        data = write(self.dir / "data.safetensors", {
            "tokens": ("I32", (count, length), [draw.randrange(256) for _ in range(count * length)]),
            "token_types": ("I32", (count, length), [draw.randrange(2) for _ in range(count * length)]),
            "lengths": ("I32", (count,), [draw.randrange(1, length + 1) for _ in range(count)]),
            "labels": ("I64", (count,), [draw.randrange(2) for _ in range(count)])})
        training, evaluation = self.dir / "training.bin", self.dir / "evaluation.bin"
        self.check("ftc", "compile", self.dir / "m.mlir", "--strategy=full_shard", "-o", training)
        self.check("ftc", "compile", self.dir / "m.mlir", "--strategy=full_shard", "--evaluate", "-o", evaluation)
        weights = self.dir / "weights.safetensors"
        self.check("ftexec", training, f"--data={data}", "--steps=2", f"--save-weights={weights}", "--progress=off")
        rows = [self.evaluate(plan, world, f"--init={weights}", data=data)[0] for plan, world in ((training, 1), (evaluation, 1), (evaluation, 3))]
        self.assertEqual([row["eval_tokens"] for row in rows], [count] * 3)
        self.assertEqual(rows[0]["eval_loss"], rows[1]["eval_loss"])
        self.assertAlmostEqual(rows[1]["eval_accuracy"] * count, round(rows[1]["eval_accuracy"] * count), places=5)
        self.assertAlmostEqual(rows[1]["eval_accuracy"], rows[2]["eval_accuracy"], places=6)

    def test_refusals(self):
        training, evaluation = self.compile("gpt2", "full_shard")
        weights = self.dir / "weights.safetensors"
        checkpoint, _ = self.trained(training, 1, f"--save-weights={weights}")
        cases = [
            (2, (evaluation, "--evaluate", f"--data={self.held_out}"), "--evaluate needs trained weights: --init=FILE|DIR, or --resume=CHECKPOINT"),
            (2, (evaluation, "--evaluate", f"--init={weights}"), "--data is missing: what shall it evaluate on?"),
            (2, (evaluation, "--evaluate", f"--data={self.held_out}", f"--init={weights}", f"--resume={checkpoint}"), "give one of them"),
            (2, (evaluation, "--evaluate", f"--data={self.held_out}:0.5", f"--init={weights}"), "--data takes no weights with --evaluate"),
            (2, (evaluation, "--evaluate", f"--data={self.held_out}", f"--init={weights}", "--lr=1"), "--lr makes no sense with --evaluate"),
            (2, (evaluation, "--evaluate", f"--data={self.held_out}", f"--init={weights}", "--save-weights=x"), "--save-weights makes no sense"),
            (65, (evaluation, f"--data={self.text}", "--steps=1"), "does not train: it is of ftc compile --evaluate"),
            (74, (evaluation, "--evaluate", f"--data={self.dir / 'absent.txt'}", f"--init={weights}"), "absent.txt"),
            (74, (evaluation, "--evaluate", f"--data={self.held_out}", f"--resume={self.dir / 'absent'}"), "absent"),
            (74, (evaluation, "--evaluate", f"--data={self.held_out}", "--resume=auto", f"--checkpoint-dir={self.dir / 'none'}"), "none"),
        ]
        for status, command, words in cases:
            with self.subTest(words=words):
                done = run("ftexec", *command)
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (status, 1), done.stderr)
                self.assertIn(words, done.stderr)
        other = self.compile("llama", "full_shard")[1]
        done = run("ftexec", other, "--evaluate", f"--data={self.held_out}", f"--resume={checkpoint}")
        self.assertEqual(done.returncode, 65)
        self.assertIn("is of another model", done.stderr)

    def ends(self, plan, world, *options):
        """The one line of a run that ends with status 65, and what it printed."""
        done = run("ftrun", f"--nproc-per-node={world}", "--standalone", BIN / "ftexec", plan, "--evaluate", *options)
        (line,) = [line for line in done.stderr.splitlines() if "ftexec: " in line]
        self.assertEqual(done.returncode, 65, done.stderr)
        return line, done.stdout

    def test_what_has_no_loss(self):
        training, evaluation = self.compile("gpt2", "full_shard")
        weights, masked, out = self.dir / "weights.safetensors", self.dir / "masked.ftd", self.dir / "m.jsonl"
        self.check("ftexec", training, f"--data={self.text}", "--steps=1", f"--save-weights={weights}", "--progress=off")
        document = [5] * (SEQ_LEN + 1)
        masked.write_bytes(ftd_files.contents([document], mask=[0] * len(document)))
        raw = weights.read_bytes()
        (length,) = struct.unpack("<Q", raw[:8])
        weights.with_suffix(".nan").write_bytes(raw[:8 + length] + struct.pack("<f", math.nan) * ((len(raw) - 8 - length) // 4))
        for plan, world in ((training, 1), (evaluation, 1), (evaluation, 2)):
            with self.subTest(plan=plan, world=world):
                line, printed = self.ends(plan, world, f"--data={masked}", f"--init={weights}")
                self.assertIn("ftexec: none of the targets that were evaluated counts, so there is no loss; ", line)
                self.assertNotIn("nan", printed)
                line, printed = self.ends(plan, world, f"--data={self.held_out}", f"--init={weights.with_suffix('.nan')}", f"--metrics={out}")
                self.assertTrue(line.endswith("ftexec: the loss is nan: the weights are no trained ones, or have diverged"), line)
                self.assertRegex(printed, r"\bloss nan  perplexity nan  over \d+ tokens\n" if plan == evaluation else r"\bloss nan  ")
                self.assertNotIn("-nan", printed)
                (row,) = metrics(out)
                self.assertEqual((row["eval_loss"], row["eval_loss_nonfinite"]), (None, "nan"))

    def test_settings_of_training_are_said_to_do_nothing(self):
        source = self.shared / "gpt2.mlir"
        self.compile("gpt2", "full_shard")
        done = self.check("ftc", "compile", source, "--strategy=full_shard", "--evaluate", "--optimizer=muon", "--clip=2", "--micro-steps=4",
                          "--remat=full", "-o", self.dir / "p.bin")
        (line,) = done.stderr.splitlines()
        self.assertEqual(line, "ftc: --remat, --optimizer, --clip, --micro-steps have no effect: evaluate is true")
        done = self.check("ftc", "compile", source, "--strategy=full_shard", "--evaluate", "--mixed-precision=bf16", "-o", self.dir / "r.bin")
        self.assertEqual(done.stderr, "")
        plain = self.dir / "q.bin"
        self.check("ftc", "compile", source, "--strategy=full_shard", "--evaluate", "-o", plain)
        self.assertEqual(plain.read_bytes(), (self.dir / "p.bin").read_bytes())


if __name__ == "__main__":
    unittest.main()
