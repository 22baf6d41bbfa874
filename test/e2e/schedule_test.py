"""Learning rates as Hugging Face's schedules have them, and runs whose ranks disagree."""

import math
import pathlib
import unittest

from harness import BIN, EndToEnd, run


def linear(step, warmup, total):
    return step / max(1, warmup) if step < warmup else max(0.0, (total - step) / max(1, total - warmup))


def cosine(step, warmup, total):
    if step < warmup:
        return step / max(1, warmup)
    return max(0.0, 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, total - warmup))))


class Schedule(EndToEnd):
    def rates(self, *options, steps=12):
        return [row["lr"] for row in self.train(self.plan("gpt2", "full_shard"), 1, "--lr=0.002", *options, steps=steps)]

    def assertRates(self, rates, factors):
        for rate, factor in zip(rates, factors, strict=True):
            self.assertAlmostEqual(rate, 0.002 * factor, delta=1e-17)

    def test_schedules(self):
        self.assertEqual(self.rates(), [0.002] * 12)
        self.assertRates(self.rates("--lr-schedule=linear", "--warmup-steps=3"), [linear(s, 3, 12) for s in range(12)])
        self.assertRates(self.rates("--lr-schedule=cosine", "--warmup-ratio=0.25"), [cosine(s, 3, 12) for s in range(12)])
        self.assertRates(self.rates("--lr-schedule=cosine", "--min-lr=0.0005"),
                         [cosine(s, 0, 12) * 0.75 + 0.25 for s in range(12)])

    def test_the_rate_acts(self):
        """A rate of 0 changes nothing: the first step of a warm-up leaves the weights as they are."""
        saved = []
        for steps in (0, 1, 2):
            path = self.dir / f"{steps}.safetensors"
            self.train(self.plan("gpt2", "full_shard"), 1, "--warmup-steps=4", f"--save-weights={path}", steps=steps)
            saved.append(path.read_bytes())
        self.assertEqual(saved[0], saved[1])
        self.assertNotEqual(saved[1], saved[2])

    def test_wrong_schedules(self):
        plan = self.plan("gpt2", "full_shard")
        for options, status, words in ((["--lr-schedule=cosin"], 2, "did you mean 'cosine'?"),
                                       (["--warmup-ratio=1.5"], 2, "--warmup-ratio"),
                                       (["--warmup-ratio=0.5", "--warmup-steps=3"], 2, "--warmup-"),
                                       (["--lr=0.1", "--min-lr=0.2"], 65, "min_lr is 0.2"),
                                       (["--eval-every=3"], 2, "--eval-every needs --eval-data")):
            with self.subTest(options=options):
                done = run("ftexec", plan, f"--data={self.text}", "--steps=2", *options)
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (status, 1), done.stderr)
                self.assertIn(words, done.stderr)

    def test_ranks_that_disagree(self):
        chooser = self.dir / "choose.sh"
        for flag, setting, values in (("lr", "lr", ("0.25", "0.5")), ("seed", "seed", ("1", "2")), ("steps", "steps", ("3", "4")),
                                      ("shuffle", "shuffle", ("on", "off"))):
            with self.subTest(flag=flag):
                chooser.write_text(f"#!/bin/sh\nif [ $RANK = 0 ]; then v={values[0]}; else v={values[1]}; fi\n"
                                   f"exec {BIN}/ftexec {self.plan('gpt2', 'full_shard')} --data={self.text} --{flag}=$v\n")
                chooser.chmod(0o755)
                done = run("ftrun", "--nproc-per-node=2", "--standalone", chooser, timeout=60)
                self.assertEqual(done.returncode, 65, done.stderr)
                self.assertRegex(done.stderr, rf"ranks differ in {setting}: {values[0]} on rank 0 \(.*\), {values[1]} on rank 1 \(")
                self.assertNotIn("different plans", done.stderr)
        for option, words in ((f"--eval-data={self.text}", "eval_data: not given on rank 0"), (f"--checkpoint-dir={self.dir}/c", "checkpoint_dir: off on rank 0"),
                              (f"--resume={self.dir}/c", "resume: not given on rank 0")):
            with self.subTest(option=option):
                chooser.write_text(f"#!/bin/sh\n[ $RANK = 1 ] && set -- '{option}'\n"
                                   f"exec {BIN}/ftexec {self.plan('gpt2', 'full_shard')} --data={self.text} --steps=2 \"$@\"\n")
                done = run("ftrun", "--nproc-per-node=2", "--standalone", chooser, timeout=60)
                self.assertEqual(done.returncode, 65, done.stderr)
                self.assertIn(f"ranks differ in {words}", done.stderr)
                self.assertNotIn("different plans", done.stderr)
        self.assertEqual([p for p in pathlib.Path("/dev/shm").iterdir() if p.name.startswith("ft")], [])


if __name__ == "__main__":
    unittest.main()
