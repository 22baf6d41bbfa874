"""Slurm, where two nodes of one are idle: ways to start ranks there. What docs/launch/slurm.sbatch does is in sbatch_test.py."""

import re
import shutil
import subprocess
import unittest

from harness import BIN, environment, run
from lost_rank_test import free_port
from meeting import LAUNCH, OPEN_MPI_AS_ROOT, Meeting, slurm_is_up


@unittest.skipUnless(slurm_is_up(), "skipped: no Slurm with two idle nodes")
class Slurm(Meeting):
    def test_srun(self):
        self.check("srun", "-N2", "-n2", *self.ftexec(), timeout=120)
        self.assert_met()
        self.check("srun", "-N1", "-n1", *self.ftexec(), timeout=120)
        self.assert_met(world=1)

    def test_ways_to_deal_out_tasks(self):
        for options in (["-N2", "-n3", "--distribution=cyclic"], ["-N2", "-n3", "--distribution=block"]):
            with self.subTest(options=options):
                self.check("srun", "--overcommit", *options, *self.ftexec(), timeout=120)
                self.assert_met(world=3)
        hosts = self.dir / "hosts"
        listed = subprocess.run(["sinfo", "-h", "-N", "-o", "%N"], capture_output=True, text=True).stdout
        nodes = list(dict.fromkeys(listed.split()))[:2]  # a node of several partitions is listed several times
        hosts.write_text("\n".join(reversed(nodes)) + "\n")
        env = environment(SLURM_HOSTFILE=hosts)
        done = run("srun", "-n2", "--distribution=arbitrary", *self.ftexec(), env=env, timeout=120)
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("SLURM_DISTRIBUTION='arbitrary'", done.stderr)
        self.check("srun", "-n2", "--distribution=arbitrary", f"--export=ALL,MASTER_ADDR={nodes[1]}", *self.ftexec(), env=env, timeout=120)
        self.assert_met()

    def test_two_steps_of_an_allocation_side_by_side(self):
        outs = [self.dir / f"{name}.jsonl" for name in "ab"]
        steps = " & ".join(f"srun --overlap -N2 -n2 {' '.join(map(str, self.ftexec(out)))}" for out in outs)
        self.check("salloc", "-N2", "-n2", "bash", "-c", steps + " & wait", timeout=120)
        for out in outs:
            self.assert_met(out)

    def test_ftrun_on_each_node(self):
        """The command of docs/launch/README.md."""
        text = (LAUNCH / "README.md").read_text()
        command = re.search(r"^    srun --ntasks-per-node=1 bash -c '(exec ftrun.*?)'$", text, re.M | re.S).group(1)
        for old, new in (("ftrun ", f"{BIN}/ftrun "), ("--nproc-per-node=4", "--nproc-per-node=1"), ("29500", str(free_port())),
                         ("ftexec plan.bin --data=corpus.txt", " ".join(map(str, self.ftexec())))):
            self.assertIn(old, command)
            command = command.replace(old, new)
        self.check("srun", "-N2", "--ntasks-per-node=1", "bash", "-c", command, timeout=120)
        self.assert_met()

    def test_without_srun_it_is_alone_and_says_so(self):
        line = " ".join(map(str, self.ftexec()))
        done = self.check("salloc", "-N2", "-n4", "--overcommit", "bash", "-c", line, timeout=120)
        self.assertRegex(done.stderr, r"ftexec: this process was not started by srun, so it trains alone, though SLURM_NTASKS='4'")
        self.assert_met(world=1)
        script, log = self.dir / "batch.sh", self.dir / "log"
        script.write_text(f"#!/bin/bash\n{line}\n")
        # From within a step, whose variables the script inherits.
        for around in ([], ["srun", "-N1", "-n1"]):
            with self.subTest(around=around):
                self.check(*around, "sbatch", "-W", "-N1", "-n2", "--overcommit", "-o", log, script, timeout=120)
                self.assertIn("SLURM_NTASKS='2'", log.read_text())
                self.assert_met(world=1)

    @unittest.skipUnless(shutil.which("mpirun.openmpi"), "skipped: no Open MPI")
    def test_mpirun_in_an_allocation(self):
        """Its daemons are tasks of a step; ranks are on two nodes, and rank 0 on the first."""
        env = environment(**OPEN_MPI_AS_ROOT)
        self.check("salloc", "-N2", "--ntasks-per-node=1", "mpirun.openmpi", "-n", "2", "--map-by", "node", *self.ftexec(), env=env,
                   timeout=120)
        self.assert_met()

    @unittest.skipUnless(shutil.which("mpirun.mpich"), "skipped: no MPICH")
    def test_mpiexec_in_an_allocation(self):
        self.check("salloc", "-N2", "--ntasks-per-node=1", "mpirun.mpich", "-n", "2", "-ppn", "1", *self.ftexec(), timeout=120)
        self.assert_met()


if __name__ == "__main__":
    unittest.main()
