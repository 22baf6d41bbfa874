"""Exported models under strategies, recomputation and precision: the same bits, and memory that is known beforehand."""
import json
import unittest

import torch

from export_modules_test import MODULES
from export_transformers_test import CAUSAL
from exporting import ExportTest, run_program, stirred
from support import BIN

STRATEGIES = ("no_shard", "zero1", "shard_grad_op", "full_shard", "hybrid_shard", "hybrid_shard_zero2")
PARTS = {"ALiBi": MODULES["ALiBi"], "nn.Transformer": MODULES["nn.Transformer"], "Llama": CAUSAL["Llama"], "Mixtral": CAUSAL["Mixtral"]}


class Strategies(ExportTest):
    def exported_part(self, name):
        torch.manual_seed(2)
        module, example = PARTS[name]()
        twice = tuple(torch.cat([tensor, tensor.flip(0)]) for tensor in example)
        folder, made = self.exported(stirred(module), example, name=name)
        made.save_examples(folder / "data.safetensors", dict(zip([each.name for each in made.inputs], twice)))
        return folder

    def bits(self, plan, ranks):
        metrics, weights = self.step(plan, ranks=ranks)
        return [metrics[0]["loss"], metrics[0]["grad_norm"]], weights

    def test_every_strategy_has_the_same_bits(self):
        for name in PARTS:
            with self.subTest(name):
                folder = self.exported_part(name)
                wanted = self.bits(self.compiled(folder, "--strategy=no_shard", plan="no_shard.bin"), 2)
                strategies = STRATEGIES[1:] if name == "ALiBi" else ("full_shard",)
                options = [(f"--strategy={strategy}",) for strategy in strategies] + [("--strategy=full_shard", "--remat=full", "--offload=activations")]
                for i, each in enumerate(options):
                    found = self.bits(self.compiled(folder, *each, plan=f"plan{i}.bin"), 2)
                    self.assertEqual(found[0], wanted[0], each)
                    self.assertTrue(all(torch.equal(found[1][key], wanted[1][key]) for key in wanted[1]), each)

    def test_memory_is_what_explain_says(self):
        for name in PARTS:
            folder = self.exported_part(name)
            whole = self.arena(self.compiled(folder, "--strategy=full_shard"))
            plan = self.compiled(folder, "--strategy=full_shard", f"--remat=budget:{whole * 97 // 100}", plan="less.bin")
            self.assertLess(self.arena(plan), whole, name)

    def arena(self, plan):
        """Bytes of a rank's arena by explain, which a run says too."""
        expected = json.loads(run_program(BIN / "ftc", "explain", plan, "--world-size=1", "--json"))
        text = run_program(BIN / "ftexec", plan, f"--data={plan.parent}/data.safetensors", "--steps=1", f"--init={plan.parent}/weights.safetensors", "--progress=off")
        found = int(text.split("arena ")[1].split(" bytes")[0])
        self.assertEqual(found, expected["arena_bytes"])
        return found

    def test_bf16_is_near(self):
        for name in PARTS:
            with self.subTest(name):
                folder = self.exported_part(name)
                exact, _ = self.step(self.compiled(folder, "--strategy=full_shard"))
                near, _ = self.step(self.compiled(folder, "--strategy=full_shard", "--mixed-precision=bf16", plan="bf16.bin"))
                self.assertAlmostEqual(near[0]["loss"], exact[0]["loss"], delta=0.01 * exact[0]["loss"])
                self.assertAlmostEqual(near[0]["grad_norm"], exact[0]["grad_norm"], delta=0.05 * exact[0]["grad_norm"])


if __name__ == "__main__":
    unittest.main()
