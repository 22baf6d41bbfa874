"""docs/launch/slurm.sbatch, submitted as it lies there to a Slurm with two idle nodes: a run that trains, saves and goes on.

It ends once before its time limit and once by `scontrol requeue`, and is to the bit the run that did not end."""

import re
import subprocess
import time
import unittest

from checkpoint_runs import checkpoints, tensors, timeless
from harness import BIN, EndToEnd, environment, metrics
from meeting import LAUNCH, slurm_is_up

STEPS = 380
# The signal of the file's #SBATCH --signal=USR1@300 comes within a minute of the start, as Slurm looks twice a minute.
LIMIT = "--time=6"
# Steps are as long as this link sleeps; what is computed is the same without it.
SLOW = "--emulate-link=1000,200000"


@unittest.skipUnless(slurm_is_up(), "skipped: no Slurm with two idle nodes")
class Sbatch(EndToEnd):
    def setUp(self):
        super().setUp()
        self.folder, self.log = self.dir / "checkpoints", self.dir / "log"
        self.metrics = self.dir / "checkpoints.metrics.jsonl"

    def submit(self, plan, *flags):
        env = environment(PATH=f"{BIN}:/usr/bin:/bin")
        job = self.check("sbatch", "--parsable", "-o", self.log, LIMIT, LAUNCH / "slurm.sbatch", plan, self.text, self.folder, *flags,
                         env=env).stdout.strip()
        self.addCleanup(subprocess.run, ["scancel", job], stderr=subprocess.DEVNULL)
        return job

    def state(self, job):
        """Of the job, and how often it was started again."""
        shown = subprocess.run(["scontrol", "show", "job", job], capture_output=True, text=True).stdout
        return re.search(r"JobState=(\w+)", shown).group(1), int(re.search(r"Restarts=(\d+)", shown).group(1))

    def text_of_job(self):
        return self.log.read_text() if self.log.exists() else ""

    def steps_done(self):
        return self.metrics.read_bytes().count(b"\n") if self.metrics.exists() else 0

    def wait_for(self, condition, what, seconds=120):
        deadline = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"{what}\n{self.text_of_job()}")
            time.sleep(0.2)

    def wait_until_queued(self, job, times):
        """And until both nodes are done with its last start: a new one fails before."""
        self.wait_for(lambda: self.state(job) == ("PENDING", times) and slurm_is_up(),
                      f"the job is not in the queue, but {self.state(job)}")

    def start(self, job):
        """It would wait in the queue for two minutes, counted from when Slurm is done with its end: said again, should that come only
        now. And it is not to come to its time limit again."""
        def has_started():
            # Refused where it has just started.
            subprocess.run(["scontrol", "update", f"JobId={job}", "StartTime=now", "TimeLimit=60"], stderr=subprocess.DEVNULL, check=False)
            time.sleep(1)
            return self.state(job)[0] != "PENDING"
        self.wait_for(has_started, "the job is not started again")

    def test_a_time_limit_and_a_requeue(self):
        plan, flags = self.plan("gpt2", "no_shard"), (f"--steps={STEPS}", "--lr=1e-3", "--lr-schedule=cosine", "--warmup-steps=20")
        alone = self.dir / "alone"
        self.train(plan, 2, *flags[1:], "--threads=1", f"--checkpoint-dir={alone}", steps=STEPS)
        expected = timeless(metrics(self.dir / "metrics.jsonl"))
        job = self.submit(plan, *flags, SLOW)

        self.wait_until_queued(job, 1)
        self.assertIn(f"status 143: job {job} goes back into the queue", self.text_of_job())
        first = max(checkpoints(self.folder))
        self.assertEqual((list(checkpoints(self.folder)), self.steps_done()), ([first], first))
        self.assertIn(first, range(1, STEPS - 30))

        self.start(job)
        self.wait_for(lambda: self.steps_done() > first + 5, "the second start did not train")
        self.check("scontrol", "requeue", job)
        self.wait_until_queued(job, 2)
        second = max(checkpoints(self.folder))
        self.assertEqual((list(checkpoints(self.folder)), self.steps_done()), ([first, second], second))
        self.assertIn(second, range(first + 5, STEPS))

        self.start(job)
        self.wait_for(lambda: self.state(job)[0] not in ("PENDING", "RUNNING", "COMPLETING"), "the third start did not end", seconds=400)
        said = self.text_of_job()
        self.assertEqual(self.state(job), ("COMPLETED", 2), said)
        for step in (first, second):
            self.assertIn(f"resumed from '{self.folder}/step-{step:08}' after {step} steps", said)
        self.assertNotIn("not as it was", said)
        self.assertEqual(timeless(metrics(self.metrics)), expected)
        self.assertEqual(tensors(checkpoints(self.folder)[STEPS]), tensors(checkpoints(alone)[STEPS]))


if __name__ == "__main__":
    unittest.main()
