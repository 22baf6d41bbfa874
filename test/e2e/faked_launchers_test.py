"""Two ranks meet with nothing but what Slurm, Open MPI, MPICH and Kubernetes set; none of them needs to be there."""

import os
import socket
import subprocess
import unittest

from harness import environment, run
from lost_rank_test import free_port
from meeting import Meeting


def slurm_step(rank, job, step=0, node_of=(0, 0), nodes="localhost", **more):
    """The variables of a task of srun -n2."""
    tasks = [node_of.count(node) for node in sorted(set(node_of))]
    return dict(SLURM_PROCID=rank, SLURM_LOCALID=node_of[:rank].count(node_of[rank]), SLURM_NODEID=node_of[rank], SLURM_JOB_ID=job,
                SLURM_STEP_ID=step, SLURM_NTASKS=2, SLURM_STEP_NUM_TASKS=2, SLURM_STEP_TASKS_PER_NODE=",".join(map(str, tasks)),
                SLURM_STEP_NODELIST=nodes, **more)


def open_mpi(rank, job):
    return dict(OMPI_COMM_WORLD_RANK=rank, OMPI_COMM_WORLD_SIZE=2, OMPI_COMM_WORLD_LOCAL_RANK=rank, OMPI_COMM_WORLD_LOCAL_SIZE=2,
                PMIX_NAMESPACE=job, PMIX_RANK=rank)


def hydra(rank):
    return dict(PMI_RANK=rank, PMI_SIZE=2, MPI_LOCALRANKID=rank, MPI_LOCALNRANKS=2)


def indexed_job(rank, port):
    return dict(JOB_COMPLETION_INDEX=rank, WORLD_SIZE=2, MASTER_ADDR="localhost", MASTER_PORT=port)


def pytorch_job(rank, port):
    return dict(RANK=rank, WORLD_SIZE=2, MASTER_ADDR="localhost", MASTER_PORT=port, PET_NPROC_PER_NODE="auto", PET_NODE_RANK=rank,
                PET_NNODES=2)


class FakedLaunchers(Meeting):
    def start(self, env, command):
        return subprocess.Popen([str(word) for word in command], env=environment(**env), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, ranks):
        for rank in ranks:
            _, errors = rank.communicate(timeout=120)
            self.assertEqual(rank.returncode, 0, errors)

    def test_two_ranks_meet(self):
        job = os.getpid()
        worlds = {"a node of Slurm": [slurm_step(rank, job) for rank in (0, 1)],
                  "two nodes of Slurm": [slurm_step(rank, job, node_of=(0, 1), nodes="localhost,other") for rank in (0, 1)],
                  "mpirun": [open_mpi(rank, job) for rank in (0, 1)],
                  "mpiexec": [hydra(rank) | dict(MASTER_PORT=port) for port in [free_port()] for rank in (0, 1)],
                  "indexed Job": [indexed_job(rank, port) for port in [free_port()] for rank in (0, 1)],
                  "PyTorchJob": [pytorch_job(rank, port) for port in [free_port()] for rank in (0, 1)]}
        for name, world in worlds.items():
            with self.subTest(launcher=name):
                self.out.unlink(missing_ok=True)
                self.finish([self.start(env, self.ftexec()) for env in world])
                self.assert_met()

    def test_steps_of_one_job_side_by_side(self):
        outs = [self.dir / f"step{step}.jsonl" for step in (0, 1)]
        self.finish([self.start(slurm_step(rank, os.getpid(), step), self.ftexec(outs[step])) for rank in (1, 0) for step in (0, 1)])
        for out in outs:
            self.assert_met(out)

    def test_a_port_in_use_is_named(self):
        job = os.getpid()
        port = 20000 + 16 * job % 8000
        with socket.socket(socket.AF_INET6) as taken:
            taken.bind(("::", port))
            taken.listen()
            done = run(*self.ftexec(), env=environment(**slurm_step(0, job)))
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (65, 1), done.stderr)
        for word in (f"port {port}", "the port is in use", "MASTER_PORT", "srun"):
            self.assertIn(word, done.stderr)

    def test_a_host_that_is_none_is_named(self):
        done = run(*self.ftexec(), "--timeout=2", env=environment(**slurm_step(1, 7, node_of=(0, 1), nodes="no-such-host[1-2]")))
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (75, 1), done.stderr)
        for word in ("no-such-host1:20112", "MASTER_ADDR", "srun"):
            self.assertIn(word, done.stderr)

    def test_nonsense_is_one_line(self):
        good = slurm_step(1, 7, node_of=(0, 1), nodes="n[0-1]")
        for bad, word in ((dict(SLURM_PROCID=2), "SLURM_PROCID='2'"), (dict(SLURM_STEP_NODELIST="n[0-"), "SLURM_STEP_NODELIST='n[0-'"),
                          (dict(SLURM_NTASKS=4), "contradicts"), (dict(SLURM_STEP_TASKS_PER_NODE="4(x2)"), "counts 8 tasks"),
                          (dict(OMPI_COMM_WORLD_RANK=0, OMPI_COMM_WORLD_SIZE=1), "contradict each other"),
                          (dict(SLURM_DISTRIBUTION="arbitrary"), "MASTER_ADDR"), (dict(WORLD_SIZE=4), "WORLD_SIZE='4'")):
            with self.subTest(bad=bad):
                done = run(*self.ftexec(), env=environment(**(good | bad)))
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (65, 1), done.stderr)
                self.assertIn(word, done.stderr)
                self.assertFalse(self.out.exists())


if __name__ == "__main__":
    unittest.main()
