"""Launchers that do not say which rank a process is: nobody trains alone by mistake, and nobody is kept from it who is alone."""

import unittest

from harness import BIN, EndToEnd, environment, run


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
        for env, word in ((dict(SLURM_PROCID=1), "srun (SLURM_PROCID=1)"), (dict(OMPI_COMM_WORLD_SIZE=2), "OMPI_COMM_WORLD_SIZE=2"),
                          (dict(PMI_SIZE=2), "mpiexec (PMI_SIZE=2)"),
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
                          (dict(WORLD_SIZE=2, SLURM_PROCID=1, SLURM_STEP_NUM_TASKS=2), "SLURM_NODEID is not set"),
                          (dict(JOB_COMPLETION_INDEX=0), "WORLD_SIZE is not set")):
            with self.subTest(env=env):
                self.refused(run(*self.ftexec("/dev/null"), env=environment(**env)), word)

    def test_ftrun_as_one_of_several(self):
        command = [BIN / "ftrun", "--nproc-per-node=1", "--master-port=0", "/bin/sh", "-c", "echo $RANK/$WORLD_SIZE"]
        env = environment(SLURM_PROCID=1, SLURM_STEP_NUM_TASKS=2)
        self.refused(run(*command, env=env), "srun", "--nnodes")
        # In a pod of a PyTorchJob, the first one too.
        self.refused(run(*command, env=environment(RANK=0, WORLD_SIZE=2, MASTER_ADDR="a", MASTER_PORT=1)), "WORLD_SIZE=2", "--nnodes")
        for option in ("--nnodes=1", "--standalone"):
            self.assertEqual(self.check(command[0], option, *command[1:], env=env).stdout, "0/1\n")


if __name__ == "__main__":
    unittest.main()
