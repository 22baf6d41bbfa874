"""What a run that goes on takes from its checkpoint, what its command line may change, and what is refused."""

import itertools
import struct
import unittest

from checkpoint_runs import SEQ, CheckpointRuns, checkpoints, manifest, tensors
from harness import metrics


def numbers(tensor):
    """Of a tensor of fp32 or bf16."""
    dtype, _, raw = tensor
    if dtype == "F32":
        return struct.unpack(f"<{len(raw) // 4}f", raw)
    halves = struct.unpack(f"<{len(raw) // 2}H", raw)
    return struct.unpack(f"<{len(halves)}f", b"".join(struct.pack("<I", half << 16) for half in halves))


class ResumeSettings(CheckpointRuns):
    def begin(self, *options, model="gpt2", world=2, steps=4, compiled=("--strategy=full_shard",), name="c", data=None):
        """A run of so many steps; its last checkpoint."""
        folder = self.dir / name
        self.go(self.tiny(model, *compiled), world, f"--steps={steps}", "--lr=0.01", f"--checkpoint-dir={folder}", *options,
                data=data)
        return checkpoints(folder)[steps]

    def on(self, before, *options, model="gpt2", world=2, compiled=("--strategy=full_shard",), data=None):
        """Goes on; the line about what is not as it was, or nothing."""
        done = self.go(self.tiny(model, *compiled), world, f"--resume={before}", *options, data=data)
        (line,) = [line for line in done.stdout.splitlines() if "resumed from" in line]
        return line.partition("; not as it was: ")[2]

    def carried(self, before, *compiled, name):
        """Its state through a run without a step."""
        folder = self.dir / name
        self.on(before, f"--checkpoint-dir={folder}", compiled=("--strategy=full_shard", *compiled))
        return checkpoints(folder)[4]

    def test_dtype_policies(self):
        fp32 = self.begin()
        first = tensors(fp32)
        for policy in ("bf16", "fp16"):
            mixed = self.carried(fp32, f"--mixed-precision={policy}", name=policy)
            self.assertEqual(tensors(mixed), first, "master weights and moments are fp32 either way")
            self.assertEqual(tensors(self.carried(mixed, name=f"{policy} back")), first)
        self.assertEqual(manifest(self.dir / "fp16/step-00000004")["health"]["scaler"], [65536, 0, 0])
        # Without master weights each one is the nearest bf16, and what comes back of it is that.
        alone = self.carried(fp32, "--mixed-precision=bf16", "--master-weights=off", name="alone")
        rounded, back = tensors(alone), tensors(self.carried(alone, name="alone back"))
        weights = [name for name, (dtype, _, _) in rounded.items() if dtype == "BF16"]
        self.assertGreater(len(weights), 10)
        for name in first:
            self.assertEqual(numbers(back[name]), numbers(rounded[name]), name)
            for was, now in zip(numbers(first[name]), numbers(rounded[name])):
                self.assertLessEqual(abs(was - now), abs(was) * 2**-8 if name in weights else 0, name)

    def test_loss_scaling_begins_where_there_was_none(self):
        fp16, out = ("--strategy=full_shard", "--mixed-precision=fp16"), self.dir / "m.jsonl"
        line = self.on(self.begin(), "--steps=6", f"--metrics={out}", compiled=fp16)
        self.assertIn("param_dtype fp16 (was fp32)", line)
        self.assertEqual(metrics(out)[0]["loss_scale"], 65536)
        # One that is fixed in the plan is not that of the checkpoint.
        before = self.begin(compiled=fp16, name="dynamic")
        said = self.on(before, "--steps=6", f"--metrics={out}", compiled=(*fp16, "--loss-scale=128"))
        self.assertIn("loss_scale 128 (was 0)", said)
        self.assertEqual([row["loss_scale"] for row in metrics(out)], [128, 128])

    def test_local_is_for_the_same_ranks_units_and_types(self):
        before = self.begin("--state-dict-type=local")
        self.assertEqual(self.on(before), "")
        others = ((1, ("--strategy=full_shard",)), (2, ("--strategy=no_shard",)), (2, ("--strategy=full_shard", "--wrap=none")),
                  (2, ("--strategy=full_shard", "--mixed-precision=bf16", "--master-weights=off")))
        for (world, compiled), resume in itertools.product(others, ("path", "auto")):
            with self.subTest(world=world, compiled=compiled, resume=resume):
                options = [f"--resume={before}"] if resume == "path" else ["--resume=auto", f"--checkpoint-dir={before.parent}"]
                line = self.refused(self.tiny("gpt2", *compiled), world, *options)
                self.assertIn(f"the checkpoint '{before}' is of type local, for the same ranks, units and types only", line)
                self.assertIn("ftckpt convert", line)
                self.assertEqual(sorted(checkpoints(before.parent)), [4])

    def test_another_model_or_optimizer(self):
        before = self.begin()
        of = f"the checkpoint '{before}' is of "
        same = ("--strategy=full_shard",)
        for plan, words in ((self.tiny("llama", *same), "another model or optimizer: it has no tensor 'model."),
                            (self.tiny("gpt2", *same, model_options=("--layers=3",)), "another model or optimizer: it has no"),
                            (self.tiny("gpt2", *same, model_options=("--hidden=32",)), "another model or optimizer: '"),
                            (self.tiny("gpt2", *same, model_options=("--heads=4",)), "another model ("),
                            (self.tiny("gpt2", *same, "--optimizer=sgd"), "another model or optimizer: its tensor '"),
                            (self.tiny("gpt2", *same, "--optimizer=adam"), "the optimizer 'adamw', and the plan's is 'adam'")):
            for options in ([f"--resume={before}"], ["--resume=auto", f"--checkpoint-dir={before.parent}"]):
                self.assertIn(of + words, self.refused(plan, 2, *options))
        self.assertEqual(sorted(checkpoints(before.parent)), [4])

    def test_differences_are_named_in_one_line(self):
        before = self.begin("--lr-schedule=cosine", "--warmup-steps=2", "--min-lr=0.001", "--seed=7")
        self.assertEqual(self.on(before), "")
        self.assertEqual(self.on(before, "--steps=4", "--lr=0.01", "--seed=7", "--shuffle=on"), "")
        self.assertEqual(self.on(before, "--steps=9"), "steps 9 (was 4)")
        said = self.on(before, "--lr=0.02", "--lr-schedule=linear", "--warmup-steps=1", "--min-lr=0", "--seed=8", "--shuffle=off",
                       "--max-bad-steps=5", world=3, compiled=("--strategy=zero1", "--micro-steps=2", "--clip=0.5", "--wrap=none"))
        for words in ("seed 8 (was 7)", "lr 0.02 (was 0.01)", "lr_schedule linear (was cosine)", "min_lr 0 (was 0.001)",
                      "warmup_steps 1 (was 2)", "shuffle off (was on)", "max_bad_steps 5 (was 3)", "micro_steps 2 (was 1)",
                      "ranks 3 (was 2)", "strategy zero1 (was full_shard)", "clip 0.5 (was 1)", "wrap none (was transformer)"):
            self.assertIn(words, said)
        fp16 = self.begin(compiled=("--strategy=full_shard", "--mixed-precision=fp16"), name="fp16")
        self.assertIn("param_dtype fp32 (was fp16)", self.on(fp16))
        # Only beside the rate of the checkpoint does the least one make sense.
        self.assertEqual(self.on(before, "--min-lr=0.002"), "min_lr 0.002 (was 0.001)")
        auto = ["--resume=auto", "--min-lr=0.002", "--steps=1"]
        line = self.refused(self.tiny("gpt2", "--strategy=full_shard"), 2, *auto, f"--checkpoint-dir={self.dir}/none")
        self.assertIn("min_lr is 0.002; expected 0 or more, not above lr, which is 0.0003", line)
        self.assertFalse((self.dir / "none/step-00000001").exists())

    def test_the_manifest_wins_over_the_plan(self):
        """Nothing is given again: the schedule, the seed, the order of the data and the end are those of the run."""
        flags = ["--lr-schedule=cosine", "--warmup-steps=3", "--min-lr=0.001", "--seed=-5", "--shuffle=off", "--save-every=3"]
        alone, out = self.dir / "alone", self.dir / "m"
        self.begin(*flags, f"--metrics={alone}", steps=8)
        out.write_bytes(alone.read_bytes())
        self.assertEqual(self.on(self.dir / "c/step-00000003", f"--metrics={out}"), "")
        self.assertEqual(self.rows(out), self.rows(alone))

    def test_other_data(self):
        text = self.text.read_bytes()
        changed = bytearray(text)
        changed[5000] ^= 1
        (self.dir / "changed.txt").write_bytes(changed)
        (self.dir / "longer.txt").write_bytes(text + text[:SEQ])
        (self.dir / "same.txt").write_bytes(text)
        before, plan = self.begin("--shuffle=off"), self.tiny("gpt2", "--strategy=full_shard")
        self.assertEqual(self.on(before, data=self.dir / "same.txt"), "")  # where a file lies does not matter
        for name, words in (("changed.txt", "is missing"), ("longer.txt", "is missing")):
            data = self.dir / name
            line = self.refused(plan, 2, f"--resume={before}", "--steps=6", data=data)
            self.assertIn(f"--data is not what the run had until here: '{self.text}' {words}", line)
            self.assertIn("--data-changed=restart reads it from its beginning", line)
            out = self.dir / "m.jsonl"
            said = self.on(before, "--steps=6", "--data-changed=restart", "--lr=0", f"--metrics={out}", data=data)
            self.assertIn("data, read from its beginning", said)
            # The third and fourth sequence of the new data are those of its second step.
            again = self.dir / "again.jsonl"
            weights = self.dir / "w"
            self.go(plan, 2, f"--resume={before}", "--steps=4", f"--save-weights={weights}")
            self.go(plan, 2, f"--init={weights}", "--shuffle=off", "--lr=0", "--steps=2", f"--metrics={again}", data=data)
            self.assertEqual([row["loss"] for row in metrics(out)[-2:]], [row["loss"] for row in metrics(again)])
            out.unlink()
        # Which it is not, need not be said.
        self.assertEqual(self.on(before, "--data-changed=restart"), "")

    def test_a_run_is_extended(self):
        """With a constant rate, a run that is told to be longer is as if it had been told so at first."""
        alone, out, folder = self.dir / "alone", self.dir / "m", self.dir / "c"
        self.begin(f"--metrics={alone}", steps=9, name="longer")
        for steps in (3, 5, 9):
            self.go(self.tiny("gpt2", "--strategy=full_shard"), 2, f"--steps={steps}", "--lr=0.01", f"--metrics={out}",
                    f"--checkpoint-dir={folder}", "--resume=auto")
        self.assertEqual(self.rows(out), self.rows(alone))
        self.assertEqual(sorted(checkpoints(folder)), [3, 5, 9])

    def test_no_step_left(self):
        """It writes the checkpoint anew, in another type and with all that was known, and nothing else."""
        out, weights = self.dir / "m", self.dir / "w"
        evaluation = [f"--eval-data={self.text}", "--eval-steps=2"]
        before = self.begin(*evaluation, f"--metrics={out}", f"--save-weights={weights}")
        rows, state, said = out.read_bytes(), tensors(before), manifest(before)
        self.assertIn("eval_loss", said)
        for kind in ("sharded", "local", "full"):
            again = self.dir / f"{kind}.w"
            self.on(before, f"--checkpoint-dir={before.parent}", f"--state-dict-type={kind}", f"--metrics={out}", *evaluation,
                    f"--save-weights={again}")
            now = manifest(before)
            self.assertEqual(now["type"], kind)
            self.assertEqual({key: now[key] for key in ("position", "health", "run", "eval_loss", "data")},
                             {key: said[key] for key in ("position", "health", "run", "eval_loss", "data")})
            self.assertEqual((out.read_bytes(), again.read_bytes()), (rows, weights.read_bytes()))
            self.assertEqual([path.name for path in before.parent.iterdir()], [before.name])
        self.assertEqual(tensors(before), state)

    def test_which_checkpoints_are_kept(self):
        evaluation = [f"--eval-data={self.text}", "--eval-every=2", "--eval-steps=1"]
        folder, plan = self.dir / "c", self.tiny("gpt2", "--strategy=full_shard")
        keep = ["--save-every=1", "--keep=2", "--keep-every=5", "--keep-best=1", *evaluation, f"--checkpoint-dir={folder}"]
        out = self.dir / "m"
        self.go(plan, 2, "--steps=7", "--lr=0.01", *keep, f"--metrics={out}")
        self.go(plan, 2, "--steps=13", "--lr=5", *keep, "--resume=auto", f"--metrics={out}")
        losses = {row["step"] + 1: row["eval_loss"] for row in metrics(out) if "eval_loss" in row}
        self.assertEqual(set(losses), {2, 4, 6, 7, 8, 10, 12, 13})
        best = min(losses, key=losses.get)
        self.assertLess(best, 12)  # the second part spoils the model, so the best one is old
        self.assertEqual(set(checkpoints(folder)), {13, 12, 10, 5, best})

    def test_saving_by_the_clock(self):
        folder, plan = self.dir / "c", self.tiny("gpt2", "--strategy=full_shard", model_options=("--batch=64",))
        out, alone = self.dir / "m", self.dir / "alone"
        steps = 20
        while True:
            self.go(plan, 2, f"--steps={steps}", "--lr=0.01", f"--metrics={alone}")
            if sum(row["step_ms"] for row in metrics(alone)) > 2500:
                break
            steps *= 2
        self.go(plan, 2, f"--steps={steps}", "--lr=0.01", f"--checkpoint-dir={folder}", "--save-every=1s", f"--metrics={out}")
        there = sorted(checkpoints(folder))
        self.assertGreater(len(there), 1)
        self.assertEqual(there[-1], steps)
        self.assertEqual(self.rows(out), self.rows(alone))
        self.cut(folder, there[0])
        self.go(plan, 2, f"--steps={steps}", "--lr=0.01", f"--checkpoint-dir={folder}", "--resume=auto", f"--metrics={out}")
        self.assertEqual(self.rows(out), self.rows(alone))

    def test_lines_of_the_metrics_that_are_computed_again(self):
        out, plan = self.dir / "m", self.tiny("gpt2", "--strategy=full_shard")
        self.begin("--save-every=2", f"--metrics={out}", steps=6)
        expected, lines = self.rows(out), out.read_text().splitlines(keepends=True)
        folder = self.dir / "c"
        for content in ("".join(lines), "".join(lines[:5]), "".join(lines[:5]) + lines[5][:30], "".join(lines[:4])):
            out.write_text(content)
            self.cut(folder, 4)
            self.go(plan, 2, f"--checkpoint-dir={folder}", "--resume=auto", f"--metrics={out}", "--save-every=2")
            self.assertEqual(self.rows(out), expected)
        # A new file says what is said once of a run; so does the old one when the ranks are others.
        new = self.dir / "new"
        self.on(checkpoints(folder)[4], f"--metrics={new}")
        self.assertEqual([row["step"] for row in metrics(new)], [4, 5])
        self.assertIn("bytes", metrics(new)[0])
        self.on(checkpoints(folder)[4], f"--metrics={out}", world=1)
        self.assertEqual([row["step"] for row in metrics(out) if "bytes" in row], [0, 4])


if __name__ == "__main__":
    unittest.main()
