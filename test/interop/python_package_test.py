"""tools/python as pip installs it, without PyTorch; the programs from Python."""
import subprocess
import sys
import unittest

import torch

from export_modules_test import Decoder, example
from exporting import ExportTest, ft, stirred
from support import BIN, installed_package

WITHOUT_TORCH = """
import pathlib, sys
import ft
ft.use_programs(sys.argv[1])
model = pathlib.Path(sys.argv[2], "model.mlir")
explained = ft.explain(model, strategy="full_shard", world_size=4)
assert explained["world_size"] == 4 and explained["arena_bytes"] > 0, explained
plan = ft.compile(model, pathlib.Path(sys.argv[2], "p.bin"), micro_steps=2)
assert ft.explain(plan)["micro_steps"] == 2
page = ft.report(plan, pathlib.Path(sys.argv[2], "report.html"), world_size=2, target="h100")
assert "<html" in page.read_text()
chosen = pathlib.Path(sys.argv[2], "train.yaml")
tuned = ft.tune(model, world_size=2, target="h100", save=chosen, remat="none", offload="none")
ft.compile(model, pathlib.Path(sys.argv[2], "tuned.bin"), strategy=None, config=chosen)
explained = ft.explain(pathlib.Path(sys.argv[2], "tuned.bin"))
assert explained["arena_bytes"] == tuned["best"][0]["arena_bytes"], (explained, tuned["best"][0])
assert [row["world_size"] for row in ft.tune(model, world_sizes=[1, 2], target="h100", remat="none", offload="none")] == [1, 2]
assert "torch" not in sys.modules
try:
    ft.compile(model, strategy="none_such")
    raise SystemExit("no error")
except ft.ProgramError as error:
    assert "none_such" in str(error), error
"""


class PythonPackage(ExportTest):
    def setUp(self):
        super().setUp()
        ft.use_programs(BIN)
        torch.manual_seed(0)
        self.module = stirred(Decoder())
        self.model, self.made = self.exported(self.module, example())

    def test_installed_by_pip_without_pytorch(self):
        venv = self.folder / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
        site = next((venv / "lib").glob("python*/site-packages"))
        installed_package(self.folder, site)
        done = subprocess.run([venv / "bin/python", "-c", WITHOUT_TORCH, BIN, self.model], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_training_yields_metrics_and_weights_come_back(self):
        plan = ft.compile(self.made, self.folder / "plan.bin", strategy="full_shard")
        data, weights = self.model / "data.safetensors", self.folder / "w.safetensors"
        runs = self.folder / "runs"
        losses = [line["loss"] for line in ft.train(plan, data, ranks=2, steps=3, lr=1e-2, save_weights=weights, checkpoint_dir=runs,
                                                    init=self.model / "weights.safetensors") if "loss" in line]
        self.assertEqual(len(losses), 3)
        self.assertLess(losses[-1], losses[0])
        before = self.module.table.weight.detach().clone()
        for path in (weights, runs):
            again = Decoder()
            self.assertEqual(ft.load_checkpoint(again, path), [])
            self.assertFalse(torch.equal(again.table.weight, before))
            self.assertIs(again.head.weight, again.table.weight)
        with self.assertRaisesRegex(ft.Error, "the module has not"):
            ft.load_checkpoint(torch.nn.Linear(2, 2), weights)

    def test_a_run_that_fails_says_why(self):
        plan = ft.compile(self.made, self.folder / "plan.bin")
        with self.assertRaisesRegex(ft.ProgramError, "none.safetensors"):
            list(ft.train(plan, self.folder / "none.safetensors", steps=1))

    def test_a_loop_that_ends_early_ends_the_run(self):
        plan = ft.compile(self.made, self.folder / "plan.bin")
        lines = ft.train(plan, self.model / "data.safetensors", steps=1000000)
        self.assertIn("loss", next(line for line in lines if "loss" in line))
        lines.close()
        self.assertEqual(subprocess.run(["pgrep", "-f", str(plan)], capture_output=True).stdout, b"")

    def test_programs_that_are_not_there(self):
        with self.assertRaisesRegex(ft.ProgramError, "use_programs"):
            ft.use_programs(self.folder)


if __name__ == "__main__":
    unittest.main()
