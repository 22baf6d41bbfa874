"""ftc tune for models of many layers on many ranks: what is printed was compiled whole, fits, and is proved at its mesh.

FT_WHOLE_TABLE=1, which make test-whole sets, looks through the whole tables (minutes of two cores), and proves all ten rows.
"""

import json
import os
import resource
import subprocess
import threading
import time
import unittest

from harness import BIN, EndToEnd, environment

WHOLE = os.environ.get("FT_WHOLE_TABLE", "0") != "0"
PART_OF_TABLE = [] if WHOLE else ["--wrap=transformer", "--persistence-threshold=0"]
MOST_BYTES, LONGEST = 4e9, 1200  # seconds
LLAMA3_405B = ["--preset=llama3-70b", "--hidden=16384", "--layers=126", "--heads=128", "--kv-heads=8", "--ffn=53248"]


class TuneLarge(EndToEnd):
    def measured(self, *options):
        """What ftc tune prints, within 4 GB of memory; its seconds, which depend on what else runs, are printed."""
        output, begin = self.dir / "tune.json", time.monotonic()
        with open(output, "w") as stream:
            process = subprocess.Popen([BIN / "ftc", "tune", *map(str, options)], stdin=subprocess.DEVNULL, stdout=stream,
                                       env=environment())
            self.addCleanup(process.kill)
            timer = threading.Timer(LONGEST, process.kill)
            timer.start()
            _, status, usage = os.wait4(process.pid, 0)
            timer.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        peak = usage.ru_maxrss * 1024  # KiB on Linux
        print(f"{self.id()}: {time.monotonic() - begin:.0f} s, {peak / 1e9:.2f} GB", flush=True)
        self.assertLess(peak, MOST_BYTES)
        return json.loads(output.read_text())

    def test_large_numbers(self):
        model = self.dir / "model.mlir"
        self.check("ftc", "model", "gpt2", "--batch=4", "--seq=64", "-o", model)
        space = self.check("ftc", "tune", model, "--global-batch=1000000000000", "--space", timeout=20).stdout
        self.assertIn("micro-step", space)

        def limited(mebibytes, *command):
            limit = mebibytes << 20
            return subprocess.run([BIN / "ftc", *command], capture_output=True, text=True, check=False, env=environment(),
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        begins = next(size for size in range(200, 2000, 10) if limited(size, "--version").returncode == 0)
        self.check("ftc", "model", "llama", "--layers=1000", "-o", model)
        done = limited(begins + 60, "compile", model, "--strategy=no_shard", "--code=none", "-o", self.dir / "p.bin")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (74, 1), done.stderr)
        self.assertIn("out of memory", done.stderr)

    def tuned(self, *model, ranks, rows):
        rows, fixed = 10 if WHOLE else rows, PART_OF_TABLE
        path, plan = self.dir / "model.mlir", self.dir / "plan.bin"
        self.check("ftc", "model", "llama", *model, "--batch=1", "--seq=8192", "-o", path)
        machine = ["--target=h100-ib", "--mixed-precision=bf16", *fixed]
        config = self.dir / "train.yaml"
        found = self.measured(path, f"--world-size={ranks}", *machine, "--json", "-o", config)
        self.assertEqual(len(found["best"]), 10)
        self.assertEqual(sorted(row["step_seconds"] for row in found["best"]), [row["step_seconds"] for row in found["best"]])
        for row in found["best"][:rows]:
            settings = [f"--{name.replace('_', '-')}={value}" for name, value in row["settings"].items()]
            settings = [setting for setting in settings if setting not in fixed]
            self.check("ftc", "compile", path, *settings, *machine, "--code=none", "-o", plan)
            self.check("ftc", "verify", plan)
            # Proved at its own mesh, too: that is what the plan was compiled for.
            explained = json.loads(self.check("ftc", "explain", plan, "--json").stdout)
            self.assertEqual(explained["world_size"], ranks)
            self.assertEqual(explained["arena_bytes"], row["arena_bytes"])
            self.assertLessEqual(row["device_bytes"], found["memory_bytes"])
            self.assertAlmostEqual(explained["step"]["seconds"], row["step_seconds"], delta=1e-9)
        chosen = self.check("ftc", "compile", path, f"--config={config}", "--print-config").stdout
        for name, value in found["best"][0]["settings"].items():
            self.assertRegex(chosen, rf"(?m)^{name}: '?{value}'? ")

    def test_llama3_70b(self):
        self.tuned("--preset=llama3-70b", ranks=512, rows=1)

    @unittest.skipUnless(WHOLE, "skipped: minutes; make test-whole runs it")
    def test_llama3_405b(self):
        self.tuned(*LLAMA3_405B, ranks=16384, rows=1)


if __name__ == "__main__":
    unittest.main()
