"""llama3-70b compiles and is explained within the time and memory that the project promises."""

import resource
import time
import unittest

from harness import EndToEnd


class LargeModel(EndToEnd):
    def test_llama3_70b(self):
        source, plan = self.dir / "model.mlir", self.dir / "plan.bin"
        self.check("ftc", "model", "llama3-70b", "-o", source)
        begin = time.monotonic()
        self.check("ftc", "compile", source, "--strategy=full_shard", "-o", plan)
        self.assertLess(time.monotonic() - begin, 20)
        # ru_maxrss is the largest child so far, in KiB: ftc model and ftc compile.
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024, 4e9)
        begin = time.monotonic()
        report = self.explain(plan, 512)
        self.assertLess(time.monotonic() - begin, 3)
        self.assertEqual(report["parameters"], 70_553_706_496)
        self.check("ftc", "verify", plan)

    def test_the_null_device_walks_it(self):
        source, plan = self.dir / "model.mlir", self.dir / "plan.bin"
        self.check("ftc", "model", "llama2-7b", "-o", source)
        self.check("ftc", "compile", source, "--strategy=full_shard", "-o", plan)
        self.check("ftexec", plan, f"--data={self.text}", "--device=null", "--world-size=64", "--steps=2", timeout=60)


if __name__ == "__main__":
    unittest.main()
