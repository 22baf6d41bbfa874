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


class CompareMixedTest(unittest.TestCase):
    """Mixed precision, on the golden file with skipped steps."""

    def setUp(self):
        self.golden = json.loads((HERE / "gpt2_fp16.json").read_text())["worlds"]["1"]
        self.distance = self.golden["distance_to_fp32"]
        self.metrics = [{"step": i, "loss": loss, "grad_norm": norm, "loss_scale": scale} | ({"skipped": True} if skip else {})
                        for i, (loss, norm, scale, skip) in enumerate(zip(*(
                            self.golden[key] for key in ("loss", "grad_norm", "loss_scale", "skipped"))))]

    def problems(self):
        return (list(compare.compare_steps(self.metrics, self.golden, 1e-5))
                + list(compare.compare_scaling(self.metrics, self.golden)))

    def test_accepts_itself_and_as_much_rounding_again(self):
        self.metrics[5]["loss"] *= 1 + 1.9 * self.distance["loss"]
        self.metrics[6]["grad_norm"] *= 1 - 1.9 * self.distance["grad_norm"]
        self.assertEqual(self.problems(), [])

    def test_refuses_more(self):
        self.metrics[5]["loss"] *= 1 + 2.1 * self.distance["loss"]
        self.metrics[6]["grad_norm"] *= 1 - 2.1 * self.distance["grad_norm"]
        self.assertEqual(len(self.problems()), 2)

    def test_refuses_a_first_loss_without_rounding(self):
        self.metrics[0]["loss"] *= 1 + self.distance["first_loss"]
        self.assertEqual(len(self.problems()), 1)

    def test_refuses_a_step_that_is_applied_and_one_that_is_not(self):
        self.assertTrue(self.golden["skipped"][1])
        del self.metrics[1]["skipped"]
        self.metrics[4]["skipped"] = True
        self.assertEqual(len(self.problems()), 2)

    def test_refuses_another_scale(self):
        self.metrics[8]["loss_scale"] *= 2
        self.assertEqual(len(self.problems()), 1)

    def test_refuses_a_finite_norm_where_there_is_none(self):
        self.assertIsNone(self.golden["grad_norm"][1])
        self.metrics[1]["grad_norm"] = 3.0
        self.metrics[4]["grad_norm"] = None
        self.assertEqual(len(self.problems()), 2)


if __name__ == "__main__":
    unittest.main()
