"""Weights and losses against transformers and the safetensors package: theirs read by us, ours read by them."""
import os
import subprocess
import unittest

import numpy as np
import safetensors.torch
import torch
import transformers

import support  # before what it makes findable
import compare
import reference

STEPS = 20
# Shapes beside the golden ones: odd numbers of layers and heads, a width that no power of two divides.
SHAPES = {
    "gpt2": (dict(hidden=48, layers=3, heads=3, ffn=144), reference.gpt2),
    "llama": (dict(hidden=48, layers=3, heads=6, kv_heads=3, ffn=112), reference.llama),
}
# Adam divides by the root of the second moment, so where a gradient is small its rounding is not: in PyTorch itself float32
# and float64 differ by up to 1e-5 of a tensor's norm after 20 steps of the golden models.
WEIGHT_TOLERANCE = 1e-4
transformers.logging.disable_progress_bar()

def pick(name, tensor):
    return torch.tensor(compare.determined(name, tensor.detach().flatten().tolist()), dtype=torch.float64)


class WeightsTest(support.InteropTest):
    def train_both(self, name, world):
        """The same 20 steps by PyTorch and by us, from weights that transformers made and saved."""
        options, build = SHAPES[name]
        torch.manual_seed(7)
        hf = build(**options)
        hf.save_pretrained(self.folder / "init")
        shape = [f"--{key.replace('_', '-')}={value}" for key, value in options.items()]
        plan = support.compile_plan(self.folder, name, "full_shard", *shape)
        metrics, saved = self.folder / "metrics.jsonl", self.folder / "saved.safetensors"
        launch = [support.BIN / "ftrun", "--standalone", f"--nproc-per-node={world}"] if world > 1 else []
        subprocess.run(launch + support.ftexec(plan, STEPS, f"--init={self.folder / 'init' / 'model.safetensors'}",
                                               f"--metrics={metrics}", f"--save-weights={saved}"),
                       check=True, env=support.environment(), timeout=300)
        tokens = np.frombuffer(support.CORPUS.read_bytes(), dtype=np.uint8)
        losses, norms = reference.train(reference.CausalLM(hf).train(), tokens, support.SEQ, support.BATCH, world, STEPS,
                                        support.LR)
        lines = support.metrics_of(metrics)
        self.assertEqual(len(lines), STEPS)
        self.assert_close([line["loss"] for line in lines], losses)
        self.assert_close([line["grad_norm"] for line in lines], norms)
        return plan, hf, saved

    def check_saved(self, plan, hf, saved):
        """Our file: read by the safetensors package, and by transformers with nothing missing or left over."""
        ours = safetensors.torch.load_file(saved)
        theirs = dict(hf.named_parameters())
        self.assertEqual({k: tuple(v.shape) for k, v in ours.items()}, {k: tuple(v.shape) for k, v in theirs.items()})
        for name, value in theirs.items():
            self.assertLessEqual((pick(name, ours[name]) - pick(name, value)).norm().item(),
                                 WEIGHT_TOLERANCE * pick(name, value).norm().item(), name)
        os.replace(saved, self.folder / "init" / "model.safetensors")
        loaded, info = type(hf).from_pretrained(self.folder / "init", output_loading_info=True)
        for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
            self.assertFalse(info[kind], kind)
        for name, value in loaded.named_parameters():
            self.assertTrue(torch.equal(value, ours[name]), name)
        self.check_same_loss(plan, loaded.eval())

    def check_same_loss(self, plan, loaded):
        """On the saved weights, ours and theirs agree on the loss; ours must read back what it wrote."""
        metrics = self.folder / "again.jsonl"
        subprocess.run(support.ftexec(plan, 1, f"--init={self.folder / 'init' / 'model.safetensors'}",
                                      f"--metrics={metrics}"), check=True, env=support.environment(), timeout=300)
        tokens = np.frombuffer(support.CORPUS.read_bytes(), dtype=np.uint8)
        with torch.no_grad():
            loss = reference.CausalLM(loaded).loss(*reference.batch(tokens, support.SEQ, support.BATCH, 0, 1, 0))
        self.assert_close([line["loss"] for line in support.metrics_of(metrics)], [loss.item()])

    def test_gpt2_one_rank(self):
        self.check_saved(*self.train_both("gpt2", 1))

    def test_gpt2_two_ranks(self):
        self.check_saved(*self.train_both("gpt2", 2))

    def test_llama_one_rank(self):
        self.check_saved(*self.train_both("llama", 1))

    def test_llama_three_ranks(self):
        self.check_saved(*self.train_both("llama", 3))


if __name__ == "__main__":
    unittest.main()
