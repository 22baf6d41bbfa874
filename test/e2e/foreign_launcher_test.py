"""Launchers that do not set RANK: nobody trains alone by mistake, and nobody is kept from it who is alone."""

import os
import shutil
import subprocess
import unittest

from harness import BIN, EndToEnd, environment, run


def slurm_is_up():
    try:
        done = subprocess.run(["sinfo", "-h", "-t", "idle,mix", "-o", "%D"], capture_output=True, text=True, timeout=10)
        return done.returncode == 0 and sum(map(int, done.stdout.split())) > 0
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return False


class ForeignLaunchers(EndToEnd):
    def ftexec(self, out):
        return [BIN / "ftexec", self.plan("gpt2", "full_shard"), f"--data={self.text}", "--steps=1", "--threads=1", "--progress=off",
                f"--metrics={out}"]

    def refused(self, done, *words, lines=1):
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (65, lines), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_a_larger_world_without_rank(self):
        out = self.dir / "m.jsonl"
        for env, word in ((dict(SLURM_PROCID=1, SLURM_STEP_NUM_TASKS=4), "RANK=$SLURM_PROCID"),
                          (dict(OMPI_COMM_WORLD_SIZE=2), "RANK=$OMPI_COMM_WORLD_RANK"), (dict(PMI_SIZE=2), "RANK=$PMI_RANK"),
                          (dict(PMIX_RANK=1), "PMIX_RANK=1"), (dict(MPI_LOCALNRANKS=2), "MPI_LOCALNRANKS=2"),
                          (dict(PET_NNODES=2), "torchrun"), (dict(PET_NPROC_PER_NODE=2), "torchrun")):
            with self.subTest(env=env):
                self.refused(run(*self.ftexec(out), env=environment(**env)), "but RANK is not set", "RANK=0 WORLD_SIZE=1", word)
                self.assertFalse(out.exists())
                self.check(*self.ftexec(out), env=environment(**env, RANK=0, WORLD_SIZE=1))
                out.unlink()

    def test_partial_sets(self):
        for env, word in ((dict(RANK=0), "WORLD_SIZE is not set"), (dict(WORLD_SIZE=2), "RANK is not set"),
                          (dict(RANK=1, WORLD_SIZE=2), "MASTER_ADDR is not set"), (dict(MASTER_ADDR="n0"), "RANK is not set"),
                          (dict(RANK=1, WORLD_SIZE=2, MASTER_ADDR="n0"), "MASTER_PORT is not set"),
                          (dict(WORLD_SIZE=2, SLURM_PROCID=1, SLURM_STEP_NUM_TASKS=2), "srun")):
            with self.subTest(env=env):
                self.refused(run(*self.ftexec("/dev/null"), env=environment(**env)), word)

    def test_ftrun_as_one_of_several(self):
        command = [BIN / "ftrun", "--nproc-per-node=1", "--master-port=0", "/bin/sh", "-c", "echo $RANK/$WORLD_SIZE"]
        env = environment(SLURM_PROCID=1, SLURM_STEP_NUM_TASKS=2)
        self.refused(run(*command, env=env), "srun", "--nnodes")
        for option in ("--nnodes=1", "--standalone"):
            self.assertEqual(self.check(command[0], option, *command[1:], env=env).stdout, "0/1\n")

    @unittest.skipUnless(shutil.which("mpirun"), "skipped: no mpirun")
    def test_mpirun(self):
        env = environment(OMPI_ALLOW_RUN_AS_ROOT=1, OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
        for launcher in ("mpirun.openmpi", "mpirun.mpich", "mpiexec.hydra"):
            if shutil.which(launcher) is None:
                continue
            several = ["-n", "2"] + (["--oversubscribe"] if "openmpi" in launcher else [])
            with self.subTest(launcher=launcher):
                done = run(launcher, *several, *self.ftexec(self.dir / "m.jsonl"), env=env)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("processes started by mpirun", done.stdout + done.stderr)
                self.assertFalse((self.dir / "m.jsonl").exists())
                self.check(launcher, "-n", "1", *self.ftexec(self.dir / "one.jsonl"), env=env)

    @unittest.skipUnless(slurm_is_up(), "skipped: no Slurm with idle nodes")
    def test_slurm(self):
        out, script = self.dir / "m.jsonl", self.dir / "batch.sh"
        done = run("srun", "-N2", "-n2", *self.ftexec(out), timeout=120)
        self.assertIn("processes started by srun (SLURM_STEP_NUM_TASKS=2)", done.stderr)
        self.assertFalse(out.exists())
        self.check("srun", "-N1", "-n1", *self.ftexec(out), timeout=120)
        # ftrun as srun's one task of each of two nodes.
        node = 'exec "$0" --nnodes=2 --node-rank=$SLURM_NODEID --master-addr=127.0.0.1 --master-port=29577 --nproc-per-node=1 "$@"'
        self.check("srun", "-N2", "-n2", "bash", "-c", node, BIN / "ftrun", *self.ftexec(self.dir / "two.jsonl"), timeout=120)
        # Alone in the shell of an allocation of four tasks, and in a batch script.
        line = " ".join(map(str, self.ftexec(self.dir / "alloc.jsonl")))
        self.check("salloc", "-N2", "-n4", "bash", "-c", line, timeout=120)
        script.write_text("#!/bin/bash\n" + " ".join(map(str, self.ftexec(self.dir / "batch.jsonl"))) + "\n")
        self.check("sbatch", "-W", "-N2", "-n4", "-o", os.devnull, script, timeout=120)
        self.assertTrue((self.dir / "alloc.jsonl").exists() and (self.dir / "batch.jsonl").exists())


if __name__ == "__main__":
    unittest.main()
