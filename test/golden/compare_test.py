"""compare.py must accept the golden numbers themselves and refuse each kind of difference."""
import json
import math
import pathlib
import unittest

import compare

HERE = pathlib.Path(__file__).parent


class CompareTest(unittest.TestCase):
    def setUp(self):
        self.golden = json.loads((HERE / "gpt2.json").read_text())["worlds"]["1"]
        self.metrics = [{"step": i, "loss": loss, "grad_norm": norm}
                        for i, (loss, norm) in enumerate(zip(self.golden["loss"], self.golden["grad_norm"]))]

    def problems(self):
        return list(compare.compare_steps(self.metrics, self.golden, 1e-5))

    def test_accepts_itself_and_rounding(self):
        self.metrics[5]["loss"] *= 1 + 5e-6
        self.assertEqual(self.problems(), [])

    def test_refuses_a_loss_beyond_the_tolerance(self):
        self.metrics[19]["loss"] *= 1 + 2e-5
        self.assertEqual(len(self.problems()), 1)

    def test_refuses_a_norm_beyond_the_tolerance(self):
        self.metrics[0]["grad_norm"] *= 1 - 2e-5
        self.assertEqual(len(self.problems()), 1)

    def test_refuses_what_is_not_finite(self):
        self.metrics[3]["loss"] = math.nan
        self.metrics[4]["grad_norm"] = None  # how ftexec writes it
        self.assertEqual(len(self.problems()), 2)

    def test_refuses_missing_steps(self):
        self.metrics.pop()
        self.assertEqual(len(self.problems()), 1)

    def test_compares_weights(self):
        golden = {"w": [3.0, math.sqrt(5.0)]}
        self.assertEqual(list(compare.compare_weights({"w": [1.0, 2.0]}, golden, 1e-5)), [])
        self.assertEqual(len(list(compare.compare_weights({"w": [-1.0, -2.0]}, golden, 1e-5))), 1)  # sum
        self.assertEqual(len(list(compare.compare_weights({"w": [1.0, 2.1]}, golden, 1e-5))), 2)  # norm and sum
        self.assertEqual(len(list(compare.compare_weights({"v": [1.0, 2.0]}, golden, 1e-5))), 1)  # name

    def test_looks_past_the_bias_of_the_keys(self):
        golden = {"h.0.attn.c_attn.bias": [4.0, math.sqrt(10.0)]}
        good, bad = [1.0, 9.0, 3.0], [2.0, 9.0, 3.0]
        self.assertEqual(list(compare.compare_weights({"h.0.attn.c_attn.bias": good}, golden, 1e-5)), [])
        self.assertNotEqual(list(compare.compare_weights({"h.0.attn.c_attn.bias": bad}, golden, 1e-5)), [])


if __name__ == "__main__":
    unittest.main()
