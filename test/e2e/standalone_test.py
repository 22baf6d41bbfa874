"""ftexec as one file: built alone, it needs only the C library and trains from a folder with nothing else in it."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import harness

# What a Linux system has before anything is installed: glibc's own libraries.
OF_THE_SYSTEM = {"linux-vdso.so.1", "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1",
                 "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


class Standalone(harness.EndToEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        build = pathlib.Path(os.environ["FT_STANDALONE"])
        for command in (["cmake", "-S", harness.SOURCE, "-B", build, "-G", "Ninja", "-DFT_COMPILER=OFF", "-DFT_TESTS=OFF",
                         "-DFT_STATIC=ON", f"-DFT_WERROR={os.environ.get('FT_WERROR', 'OFF')}",
                         f"-DFT_CUDA_ARCHITECTURES={os.environ.get('FT_CUDA_ARCHITECTURES', 'auto').replace(',', ';')}"],
                        ["ninja", "-C", build, "ftexec"]):
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        cls.program = build / "bin" / "ftexec"

    def test_needs_only_the_c_library(self):
        lines = self.check("ldd", self.program).stdout.splitlines()
        needed = {pathlib.Path(line.split()[0]).name for line in lines}
        self.assertEqual(needed - OF_THE_SYSTEM, set())

    def test_starts_with_the_c_library_of_older_systems(self):
        symbols = self.check("objdump", "-T", self.program).stdout
        newest = max(tuple(map(int, version)) for version in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols))
        self.assertLessEqual(newest, (2, 34))  # Red Hat Enterprise Linux 9's, and that of the wheel's tag

    def test_trains_from_a_bare_folder(self):
        plan = self.plan("gpt2", "full_shard")
        expected = [row["loss"] for row in self.train(plan, 1, steps=5)]
        bare = self.dir / "bare"
        bare.mkdir()
        shutil.copy(self.program, bare)
        shutil.copy(plan, bare / "plan.bin")
        shutil.copy(self.text, bare / "text.txt")
        done = subprocess.run(["./ftexec", "plan.bin", "--data=text.txt", "--steps=5", "--metrics=metrics.jsonl"], cwd=bare,
                              env={}, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        losses = [json.loads(line)["loss"] for line in (bare / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual(losses, expected)

    def test_says_what_it_cannot(self):
        done = harness.run(self.program, self.plan("gpt2", "full_shard"), f"--data={self.text}", "--device=cuda", "--steps=1")
        self.assertIn(done.returncode, (65, 74))
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertIn("CUDA", done.stderr)


if __name__ == "__main__":
    unittest.main()
