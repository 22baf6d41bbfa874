"""Open MPI and MPICH, where they are installed, and the script of docs/launch for Open MPI."""

import os
import shutil
import subprocess
import unittest

from harness import BIN, environment
from meeting import LAUNCH, OPEN_MPI_AS_ROOT, Meeting


class Mpi(Meeting):
    def mpirun(self, launcher, *options):
        return self.check(launcher, *options, *self.ftexec(), env=environment(**OPEN_MPI_AS_ROOT), timeout=120)

    @unittest.skipUnless(shutil.which("mpirun.openmpi"), "skipped: no Open MPI")
    def test_open_mpi(self):
        self.mpirun("mpirun.openmpi", "-n", "2", "--oversubscribe")
        self.assert_met()
        self.mpirun("mpirun.openmpi", "-n", "1")
        self.assert_met(world=1)

    def ftexec_of_docs(self):
        """A PATH with an ftexec that runs ours on one thread for 3 steps."""
        stub = self.dir / "bin/ftexec"
        stub.parent.mkdir()
        stub.write_text('#!/bin/bash\nargs=()\nfor word; do case $word in --steps=*) ;; *) args+=("$word") ;; esac; done\n'
                        f'exec {BIN}/ftexec "${{args[@]}}" --steps=3 --threads=1 --progress=off\n')
        stub.chmod(0o755)
        return f"{stub.parent}:{os.environ['PATH']}"

    @unittest.skipUnless(shutil.which("mpirun.openmpi"), "skipped: no Open MPI")
    def test_the_script_of_docs(self):
        env = environment(**OPEN_MPI_AS_ROOT, RANKS=2, PATH=self.ftexec_of_docs(), OMPI_MCA_rmaps_base_oversubscribe="true")
        for hosts in ("", self.dir / "hosts"):
            with self.subTest(hosts=str(hosts)):
                if hosts:
                    hosts.write_text("# hosts\n\nlocalhost slots=2\n")
                self.check(LAUNCH / "openmpi.sh", hosts, self.plan("gpt2", "full_shard"), self.text, self.dir / "checkpoints", env=env,
                           timeout=120)
                self.assert_met(self.dir / "checkpoints.metrics.jsonl")

    @unittest.skipUnless(shutil.which("mpirun.mpich"), "skipped: no MPICH")
    def test_mpich(self):
        self.mpirun("mpirun.mpich", "-n", "2")
        self.assert_met()

    @unittest.skipUnless(shutil.which("mpirun.mpich"), "skipped: no MPICH")
    def test_two_mpiexecs_side_by_side(self):
        """They set nothing that tells their ranks apart."""
        outs = [self.dir / f"{name}.jsonl" for name in "ab"]
        jobs = [subprocess.Popen([str(word) for word in ("mpirun.mpich", "-n", "2", *self.ftexec(out))], env=environment(),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for out in outs]
        for job, out in zip(jobs, outs):
            output, _ = job.communicate(timeout=120)
            self.assertEqual(job.returncode, 0, output)
            self.assert_met(out)


if __name__ == "__main__":
    unittest.main()
