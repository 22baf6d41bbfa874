"""Few descriptors, threads, memory: one line, status 74, and an end."""

import os
import re
import resource
import subprocess
import unittest

from harness import BIN, EndToEnd, environment, run

NOBODY = 65534


class Limits(EndToEnd):
    def command(self, program):
        ftexec = [BIN / "ftexec", self.plan("gpt2", "full_shard"), f"--data={self.text}", "--steps=2", "--progress=off", "--threads=4"]
        return ftexec if program == "ftexec" else [BIN / "ftrun", "--standalone", "--nproc-per-node=2", *ftexec]

    def limited(self, command, limits, user=None):
        def limit():
            for name, most in limits.items():
                resource.setrlimit(name, (most, most))
            if user is not None:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)

        return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60, env=environment(),
                              stdin=subprocess.DEVNULL, preexec_fn=limit)

    def ends_well(self, done, program):
        """It trained, or said in a line why not. (A library that cannot even be loaded is the loader's business.)"""
        said = f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
        if done.returncode == 0:
            return True
        loader = ("error while loading shared libraries", "cannot allocate TLS data structures for initial thread",
                  "cannot allocate memory for find-object data")
        if done.returncode == 127 and any(words in done.stderr for words in loader):
            return False
        self.assertEqual(done.returncode, 74, said)
        lines = [line for line in done.stderr.splitlines() if re.match(rf"(\[rank \d\] )?{program}|ftexec: ", line)]
        self.assertTrue(lines if program == "ftrun" else len(lines) == 1, said)
        self.assertNotIn("terminate called", done.stderr)
        return False

    def test_few_descriptors(self):
        for program in ("ftexec", "ftrun"):
            ended = [self.ends_well(self.limited(self.command(program), {resource.RLIMIT_NOFILE: most}), program)
                     for most in (*range(4, 24), 256)]
            self.assertFalse(ended[0])
            self.assertTrue(ended[-1])

    def test_little_memory(self):
        """From what the libraries alone take to plenty: somewhere between, threads find no room for their stacks."""
        for program in ("ftexec", "ftrun"):
            ended = [self.ends_well(self.limited(self.command(program), {resource.RLIMIT_AS: mebibytes << 20}), program)
                     for mebibytes in (*range(40, 400, 20), 4000)]
            self.assertTrue(ended[-1], program)

    @unittest.skipUnless(os.geteuid() == 0, "skipped: needs root, to run as somebody who has no other processes")
    def test_few_threads(self):
        self.shared.chmod(0o755)
        self.dir.chmod(0o777)
        for program in ("ftexec", "ftrun"):
            command = self.command(program)
            for file in self.shared.iterdir():
                file.chmod(0o777 if file.is_dir() else 0o644)
            ended = [self.ends_well(self.limited(command, {resource.RLIMIT_NPROC: most}, user=NOBODY), program)
                     for most in (*range(1, 24), 400)]
            self.assertFalse(ended[0])
            self.assertTrue(ended[-1])

    def test_openmp_threads_that_are_none(self):
        command = self.command("ftexec")
        for value in ("abc", "0", "-3", "2,x", "99999", "1e3", " "):
            with self.subTest(value=value):
                done = run(*command, env=environment(OMP_NUM_THREADS=value))
                own = [line for line in done.stderr.splitlines() if line.startswith("ftexec: ")]
                self.assertEqual((done.returncode, len(own)), (65, 1), done.stderr)
                self.assertIn(f"OMP_NUM_THREADS='{value}'", own[0])
        for value in ("2", "2,1", ""):
            self.check(*command[:-1], env=environment(OMP_NUM_THREADS=value))
        self.assertIn("3 threads per rank", self.check(*command[:-1], env=environment(OMP_NUM_THREADS="3,2")).stdout)


if __name__ == "__main__":
    unittest.main()
