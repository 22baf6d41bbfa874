"""What the tests of launchers share: a run of two ranks that have met, known by its metrics."""

import subprocess

from harness import BIN, SOURCE, EndToEnd, metrics

LAUNCH = SOURCE / "docs/launch"
OPEN_MPI_AS_ROOT = dict(OMPI_ALLOW_RUN_AS_ROOT=1, OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)


def slurm_is_up():
    try:
        done = subprocess.run(["sinfo", "-h", "-t", "idle,mix", "-o", "%D"], capture_output=True, text=True, timeout=10)
        return done.returncode == 0 and sum(map(int, done.stdout.split())) > 1
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return False


class Meeting(EndToEnd):
    def setUp(self):
        super().setUp()
        self.out = self.dir / "metrics.jsonl"

    def ftexec(self, out=None, steps=3):
        return [BIN / "ftexec", self.plan("gpt2", "full_shard"), f"--data={self.text}", f"--steps={steps}", "--threads=1", "--progress=off",
                f"--metrics={out or self.out}"]

    def curve(self, path):
        return [(row["loss"], row["grad_norm"]) for row in metrics(path)]

    def expected(self, world=2, steps=3):
        """What the same ranks compute under ftrun; `self.out` is left to whoever asks."""
        out = self.out.rename(self.dir / "met.jsonl") if self.out.exists() else None
        rows = self.train(self.plan("gpt2", "full_shard"), world, "--threads=1", steps=steps)
        if out is not None:
            out.rename(self.out)
        return [(row["loss"], row["grad_norm"]) for row in rows]

    def assert_met(self, path=None, world=2):
        self.assertEqual(self.curve(path or self.out), self.expected(world))
