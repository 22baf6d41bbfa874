"""docs/memory-formulas.md, on llama2-7b: bytes at rest of every strategy against the formulas, within padding."""

import json
import unittest

from harness import EndToEnd

BLOCK = 1024  # elements
WORLDS = (8, 64, 512)
SHARDS = 8  # of hybrid strategies
# Bytes for each parameter: parameters, gradients, optimizer state.
FP32 = {"parameters": 4, "gradients": 4, "optimizer_state": 8}
BF16 = {"parameters": 2, "gradients": 2, "optimizer_state": 12}
ALONE = {"parameters": 2, "gradients": 2, "optimizer_state": 8}  # bf16 weights without masters
# Which of these are whole on each rank.
WHOLE = {
    "no_shard": {"parameters", "gradients", "optimizer_state"},
    "zero1": {"parameters", "gradients"},
    "shard_grad_op": set(),
    "full_shard": set(),
    "hybrid_shard": set(),
    "hybrid_shard_zero2": set(),
}
TENSORS = 291  # of llama2-7b
# Of the copies that shard_grad_op keeps from forward to backward, what is live at the peak: the embedding is released after
# forward, since backward does not read it (2% of P), and backward may have released its first units (3% each).
LEAST_GATHERED = 0.95


class MemoryFormulas(EndToEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.reports = {}

    def reports_of(self, model, world, *options):
        """Strategy -> what explain says."""
        key = (model, world, *options)
        if key not in self.reports:
            source = self.shared / f"{model}.mlir"
            if not source.exists():
                self.check("ftc", "model", model, "--batch=1", "-o", source)
            mesh = f"--mesh=replica:{world // SHARDS},shard:{SHARDS}"
            out = self.check("ftc", "explain", source, "--compare=all", mesh, "--json", *options).stdout
            self.reports[key] = {report["name"]: report for report in json.loads(out)["plans"]}
        return self.reports[key]

    def within_padding(self, bytes_, per_parameter, report, whole, least=1.0):
        """At least `least` of the formula, and at most its bound above it."""
        parameters, units = report["parameters"], len(report["traffic"]["by_unit"]) - 1
        ranks = report["mesh"]["shard"]
        exact = per_parameter * parameters / (1 if whole else ranks)
        padding = BLOCK * (TENSORS + units * ranks) if whole else BLOCK * (TENSORS / ranks + units)
        self.assertGreaterEqual(bytes_, least * exact)
        self.assertLess(bytes_, exact + per_parameter * padding)
        self.assertLess(per_parameter * padding, 0.01 * exact, "the bound says something")

    def check_all(self, bytes_per_parameter, *options):
        for world in WORLDS:
            for strategy, report in self.reports_of("llama2-7b", world, *options).items():
                for kind, per_parameter in bytes_per_parameter.items():
                    # Kept until backward in 16 bit: the gather casts the master slice, nothing else is at rest.
                    until_backward = strategy in ("shard_grad_op", "hybrid_shard_zero2")
                    with self.subTest(strategy=strategy, world=world, kind=kind, options=options):
                        if kind == "parameters" and until_backward and bytes_per_parameter == BF16:
                            self.assertEqual(report["at_rest"][kind], 0)
                            self.within_padding(report["bytes"]["gathered"], per_parameter, report, whole=True,
                                                least=LEAST_GATHERED)
                            continue
                        self.within_padding(report["at_rest"][kind], per_parameter, report, kind in WHOLE[strategy])

    def test_fp32(self):
        self.check_all(FP32)

    def test_bf16(self):
        self.check_all(BF16, "--mixed-precision=bf16")

    def test_bf16_without_masters(self):
        self.check_all(ALONE, "--mixed-precision=bf16", "--master-weights=off")

    def test_parameters(self):
        for strategy, report in self.reports_of("llama2-7b", 8).items():
            self.assertEqual(report["parameters"], 6_738_415_616, strategy)

    def test_zero_by_name(self):
        """zero1 4P + 12P/N, zero2 2P + 14P/N (at the peak), zero3 16P/N."""
        for world in WORLDS:
            reports = self.reports_of("llama2-7b", world, "--mixed-precision=bf16")
            p = 6_738_415_616
            for strategy, formula in (("zero1", 4 * p + 12 * p / world), ("shard_grad_op", 2 * p + 14 * p / world),
                                      ("full_shard", 16 * p / world)):
                with self.subTest(strategy=strategy, world=world):
                    report = reports[strategy]
                    held = report["at_rest"]["total"]
                    if strategy == "shard_grad_op":
                        held += report["bytes"]["gathered"]
                    least = LEAST_GATHERED if strategy == "shard_grad_op" else 1
                    self.assertGreaterEqual(held, least * formula)
                    self.assertLess(held, 1.005 * formula)

    def test_quoted_figures(self):
        """12 and 16 bytes a parameter; 84, 156 and 39 GB are for 7.0e9 and 13.0e9 parameters."""
        for model, gigabytes in (("llama2-7b", 80.86), ("llama2-13b", 156.19)):
            with self.subTest(model=model):
                source = self.shared / f"{model}.mlir"
                if not source.exists():
                    self.check("ftc", "model", model, "--batch=1", "-o", source)
                out = self.check("ftc", "explain", source, "--compare=full_shard", "--mixed-precision=bf16", "--json").stdout
                one = json.loads(out)["plans"][0]
                rest, p = one["at_rest"], one["parameters"]
                self.assertAlmostEqual(rest["total"] / p, 16, delta=0.01)
                self.assertAlmostEqual((rest["total"] - rest["of_optimizer_state_master"]) / p, 12, delta=0.01)
                self.assertAlmostEqual((rest["total"] - rest["of_optimizer_state_master"]) / 1e9, gigabytes, delta=0.05)
                out = self.check("ftc", "explain", source, "--compare=full_shard", "--mixed-precision=bf16",
                                 "--master-weights=off", "--json").stdout
                alone = json.loads(out)["plans"][0]["at_rest"]["total"]
                self.assertEqual(alone, rest["total"] - rest["of_optimizer_state_master"])
        plan = self.shared / "13b.bin"
        self.check("ftc", "compile", self.shared / "llama2-13b.mlir", "--strategy=full_shard", "--mixed-precision=bf16", "-o", plan)
        rest = self.explain(plan, 4)["at_rest"]
        self.assertAlmostEqual((rest["total"] - rest["of_optimizer_state_master"]) / 1e9, 39.05, delta=0.05)


if __name__ == "__main__":
    unittest.main()
