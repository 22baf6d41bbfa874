"""ftexec --calibrate: a machine that is measured, and the kernels of a plan, as far as predicted times with an interval."""

import os
import re
import unittest

from harness import BIN, EndToEnd, run


class CalibrateTest(EndToEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.machines = {}
        for ranks in (1, 2):
            path = cls.shared / f"machine{ranks}.yaml"
            done = run(*cls.ftexec(ranks), f"--calibrate={path}", "--calibrate-seconds=2", "--threads=1")
            assert done.returncode == 0, done.stdout + done.stderr
            cls.machines[ranks] = (path, done)

    @staticmethod
    def ftexec(ranks):
        return ["ftexec"] if ranks == 1 else ["ftrun", f"--nproc-per-node={ranks}", "--standalone", BIN / "ftexec"]

    def test_a_machine_file_has_all_that_was_measured_and_says_how(self):
        for ranks, (path, done) in self.machines.items():
            text = path.read_text()
            self.assertIn(f"measured by ftexec --calibrate with {ranks} rank{'' if ranks == 1 else 's'} a host, 1 thread each", done.stdout)
            for needed in ("device: cpu", f"ranks_per_node: {ranks}", "instruction_set:", 'dtypes: fp32,bf16', "drift:", "half_k", "fp32:",
                           "sustained:", "latency_us:", "copies:"):
                if needed != "half_k":  # 0 is left out
                    self.assertIn(needed, text)
            for kind in ("all_gather", "reduce_scatter", "all_reduce"):
                curve = re.search(rf"  {kind}:\n    1x2: {{(.*)}}", text)
                self.assertEqual(bool(curve), ranks == 2, kind)
                if curve:
                    self.assertEqual(curve[1].count(":"), 8)
                self.assertEqual(bool(re.search(rf"  {kind}:\n    kernels: ", text)), ranks == 2, kind)
            self.assertRegex(text, r"  copy:\n    kernels: ")
            for name in (os.uname().nodename, os.environ.get("USER", "root") + "@", str(self.shared)):
                self.assertNotIn(name, text)

    def test_a_step_is_predicted_with_an_interval(self):
        for ranks, (path, _) in self.machines.items():
            for strategy in ("no_shard", "full_shard"):
                plan = self.shared / f"{strategy}{ranks}.bin"
                model = self.dir / "model.mlir"
                self.check("ftc", "model", "gpt2", "--preset=debug", "-o", model)
                self.check("ftc", "compile", model, f"--strategy={strategy}", f"--target={path}", "-o", plan)
                step = self.explain(plan, ranks)["step"]
                half = (step["seconds_high"] - step["seconds_low"]) / 2 / step["seconds"]
                self.assertGreater(half, 0.03)
                self.assertLessEqual(half, 0.15 + 1e-9)
                self.assertRegex(self.check("ftc", "explain", plan, f"--world-size={ranks}").stdout, r"\n  between .* and ")
                kernels = self.dir / "kernels.yaml"
                self.check(*self.ftexec(ranks), plan, f"--calibrate={kernels}", "--calibrate-seconds=1", "--threads=1")
                timed = self.explain(plan, ranks, f"--target={kernels}")
                self.assertEqual(timed["assumptions"], [])
                for one, kernels_of in ((step, ("products", "attention", "memory")), (timed["step"], ("timed",))):
                    sources = one["sources"]
                    self.assertAlmostEqual(sum(sources.values()) + one["slowed_seconds"], one["seconds"], delta=0.001 * one["seconds"])
                    self.assertTrue(all((sources[name] > 0) == (name in kernels_of) for name in ("timed", "products", "attention", "memory")), sources)
                row = self.train(plan, ranks, "--threads=1", steps=25)
                measured = sorted(r["step_ms"] for r in row[5:])[10] * 1e-3
                # On a machine that others use: this is no test of how true it comes.
                self.assertLess(timed["step"]["seconds"], 3 * measured)
                self.assertGreater(timed["step"]["seconds"], measured / 3)

    def test_the_null_device_takes_what_was_measured(self):
        """Kernels that were timed, copies beside them, collectives of the machine: as ftc explain reckons them, to the microsecond."""
        path, _ = self.machines[2]
        model, plan, kernels = self.dir / "model.mlir", self.dir / "plan.bin", self.dir / "kernels.yaml"
        self.check("ftc", "model", "gpt2", "--preset=debug", "-o", model)
        options = ["--strategy=full_shard", "--offload=optimizer", "--world-size=2"]
        self.check("ftc", "compile", model, *options, f"--target={path}", "-o", plan)
        self.check("ftexec", plan, f"--calibrate={kernels}", "--calibrate-seconds=0.5", "--threads=1", "--world-size=2")
        self.check("ftc", "compile", model, *options, f"--target={kernels}", "-o", plan)
        step = self.explain(plan, 2)["step"]
        self.assertGreater(step["sources"]["timed"], 0)
        out = self.check("ftexec", plan, "--device=null", "--world-size=2").stdout
        self.assertEqual(re.search(r"simulated step ([0-9.]+) ms", out)[1], f"{step['seconds'] * 1e3:.3f}")

    def test_every_kernel_of_the_plan_is_timed_and_one_device_predicts_many_ranks(self):
        path, _ = self.machines[1]
        model, plan, kernels = self.dir / "model.mlir", self.dir / "plan.bin", self.dir / "kernels.yaml"
        self.check("ftc", "model", "llama", "--preset=debug", "-o", model)
        self.check("ftc", "compile", model, "--strategy=full_shard", f"--target={path}", "-o", plan)
        done = self.check("ftexec", plan, f"--calibrate={kernels}", "--calibrate-seconds=1", "--threads=1", "--world-size=8")
        self.assertIn("1 rank a host", done.stdout)
        text = kernels.read_text()
        titles = re.findall(r'"[0-9a-f]{16}": {us: [0-9.e-]+, spread: [0-9.e-]+(?:, share: [0-9.e-]+)?}  # (\w+)', text)
        for kernel in ("matmul", "attention", "cluster", "update"):
            self.assertTrue(any(kernel in title for title in titles), (kernel, titles))
        self.assertIn("share: ", text)  # what works on slices
        for ranks in (1, 8, 512):
            step = self.explain(plan, ranks, f"--target={kernels}")["step"]
            self.assertGreater(step["seconds"], 0)
        # Kernels over slices take less time on more ranks, all others the same.
        phases = [self.explain(plan, ranks, f"--target={kernels}")["step"]["phase_seconds"] for ranks in (2, 64)]
        self.assertAlmostEqual(phases[0]["forward"], phases[1]["forward"], delta=0.02 * phases[0]["forward"])
        self.assertLess(phases[1]["optimizer"], phases[0]["optimizer"])
        self.assertIn("an estimate: measured with 1 rank a host", " ".join(
            self.explain(plan, 2, f"--target={self.two_on_a_node(kernels)}")["assumptions"]))

    def test_links_of_a_cluster_come_from_the_logs_of_its_tests(self):
        path, _ = self.machines[1]
        model, plan, kernels = self.dir / "model.mlir", self.dir / "plan.bin", self.dir / "kernels.yaml"
        self.check("ftc", "model", "llama", "--preset=debug", "-o", model)
        self.check("ftc", "compile", model, "--strategy=full_shard", f"--target={path}", "-o", plan)
        ranks = "".join(f"#  Rank {rank:2} Group  0 Pid 47{rank} on host-{rank // 8} device {rank % 8} [0x07] NVIDIA H100\n" for rank in range(16))
        logs, seconds = [], {}
        for us in (1000, 9000):
            for name, operation in (("all_gather", "none"), ("reduce_scatter", "sum"), ("all_reduce", "sum")):
                logs.append(self.dir / f"{name}.log")
                logs[-1].write_text(f"# Collective test starting: {name}_perf\n{ranks}# size count type redop root time algbw busbw #wrong\n" + "".join(
                    f"  {size}  {size // 64}  float  {operation}  -1  {us}  0.1  0.1  0  {us}  0.1  0.1  0\n" for size in (1024, 1 << 30)))
            self.check("ftexec", plan, f"--calibrate={kernels}", "--calibrate-seconds=0.5", "--threads=1",
                       f"--calibrate-links={','.join(map(str, logs[-3:]))}")
            text = kernels.read_text()
            self.assertIn("; links by nccl-tests", text)
            self.assertEqual(text.count("    2x8: {"), 3)
            self.assertIn("\nranks_per_node: 8\n", text)
            seconds[us] = self.explain(plan, 16, f"--target={kernels}")["step"]["exposed_seconds"]
        self.assertGreater(seconds[9000], 5 * seconds[1000])
        logs[0].write_text("# all_gather_perf\nno table\n")
        done = run("ftexec", plan, f"--calibrate={kernels}", "--calibrate-seconds=0.5", f"--calibrate-links={logs[0]}")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (65, 1), done.stderr)
        self.assertIn("has no table of all_gather_perf", done.stderr)
        self.assertEqual(kernels.read_text(), text)

    def two_on_a_node(self, path):
        other = self.dir / "two.yaml"
        other.write_text(path.read_text().replace("ranks_per_node: 1", "ranks_per_node: 2"))
        return other

    def test_another_layout_is_said(self):
        path, _ = self.machines[1]
        model, plan = self.dir / "model.mlir", self.dir / "plan.bin"
        self.check("ftc", "model", "gpt2", "--preset=debug", "-o", model)
        self.check("ftc", "compile", model, "--strategy=no_shard", f"--target={path}", "-o", plan)
        done = self.check("ftexec", plan, f"--data={self.text}", "--steps=1", "--threads=2")
        self.assertIn("machine1 was measured with 1 rank a host, 1 thread each", done.stderr)
        self.assertIn("an estimate", done.stderr)
        done = self.check("ftexec", plan, f"--data={self.text}", "--steps=1", "--threads=1")
        self.assertNotIn("an estimate", done.stderr)
        done = self.check("ftexec", plan, f"--calibrate={self.dir}/k.yaml", "--calibrate-seconds=0.5", "--threads=2")
        self.assertIn("kernels are timed with 1 rank a host, 2 threads each", done.stderr)
        self.assertRegex((self.dir / "k.yaml").read_text(), r"\nmeasured:\n  ranks: 1\n  threads: 1\n(.*\n)*  timed:\n    ranks: 1\n    threads: 2\n")
        assumed = self.explain(plan, 1, f"--target={self.dir}/k.yaml")["assumptions"]
        self.assertEqual([line.startswith("an estimate: kernels were timed with 1 rank a host, 2 threads each") for line in assumed], [True], assumed)

    def test_what_makes_no_sense_is_one_line(self):
        model, plan = self.dir / "model.mlir", self.dir / "plan.bin"
        self.check("ftc", "model", "gpt2", "--preset=debug", "-o", model)
        self.check("ftc", "compile", model, "--strategy=no_shard", "--target=h100-ib", "-o", plan)
        for command, status, message in (
                (["ftexec", f"--calibrate={self.dir}/m.yaml", f"--data={self.text}"], 2, "--data makes no sense with --calibrate"),
                (["ftexec", f"--calibrate={self.dir}/m.yaml", "--seed=3"], 2, "--seed makes no sense with --calibrate"),
                (["ftexec", plan, f"--calibrate={self.dir}/m.yaml", "--lr=1"], 2, "--lr makes no sense with --calibrate"),
                (["ftexec", plan, f"--calibrate={self.dir}/m.yaml", "--data-format=text"], 2, "--data-format makes no sense with --calibrate"),
                (["ftexec", f"--calibrate={self.dir}/m.yaml", "--mesh=shard:2"], 2, "--mesh is for --calibrate of a plan"),
                (["ftexec", f"--calibrate={self.dir}/m.yaml", "--device=null"], 2, "--calibrate makes no sense with --device=null"),
                (["ftexec", plan, f"--data={self.text}", "--calibrate-seconds=3"], 2, "--calibrate-seconds needs --calibrate"),
                (["ftexec", plan, f"--data={self.text}", "--calibrate-links=a.log"], 2, "--calibrate-links needs --calibrate"),
                (["ftexec", f"--calibrate={self.dir}/m.yaml", f"--calibrate-links={self.dir}/none.log"], 74, "none.log"),
                (["ftexec"], 2, "plan is required"),
                (["ftexec", f"--calibrate={self.dir}/no/m.yaml"], 74, "no/m.yaml"),
                (["ftexec", plan, f"--calibrate={self.dir}/m.yaml"], 65, "was compiled for no CPU")):
            done = run(*command)
            self.assertEqual(done.returncode, status, (command, done.stdout, done.stderr))
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(message, done.stderr)
            self.assertFalse((self.dir / "m.yaml").exists())

    def test_a_bad_file_is_one_line(self):
        good = self.machines[1][0].read_text()
        model, bad = self.dir / "model.mlir", self.dir / "bad.yaml"
        self.check("ftc", "model", "gpt2", "--preset=debug", "-o", model)
        for old, new, message in (("drift: ", "drifts: ", "unknown key 'measured.drifts', did you mean 'measured.drift'?"),
                                  ("threads: 1", "threads: 0", "'measured.threads': '0'"),
                                  ("threads: 1", "threads: -2", "'measured.threads': '-2'"),
                                  ("ranks: 1", "ranks: x", "'measured.ranks': 'x'"),
                                  ("    tflops: ", "    tflops: -", "'compute.fp32.tflops': '-"),
                                  ("dtypes: fp32", "dtypes: fp64", "'fp64' is none of"),
                                  ("kernels:\n", "kernels:\n  timed: {\"12\": {us: 3}}\n", "'12' is not 16 hexadecimal digits"),
                                  ("kernels:\n", "kernels:\n  timed: {\"0123456789abcdef\": {us: -3}}\n", "'kernels.timed.0123456789abcdef.us'")):
            self.assertIn(old, good)
            bad.write_text(good.replace(old, new, 1))
            done = run("ftc", "compile", model, "--strategy=no_shard", f"--target={bad}", "-o", self.dir / "plan.bin")
            self.assertEqual(done.returncode, 65, (new, done.stderr))
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn("bad.yaml:", done.stderr)
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    unittest.main()
