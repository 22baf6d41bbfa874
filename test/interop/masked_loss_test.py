"""Targets that do not count: a step's loss and gradient are those of all that count, on whatever rank and in whatever micro-step they lie."""
import copy
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import torch
import transformers as tf
from safetensors.torch import save_file
from torch.nn import functional as F

from support import BIN, ROOT, environment, metrics_of

sys.path.insert(0, str(ROOT / "tools" / "python"))
import ft  # noqa: E402

tf.logging.set_verbosity_error()

BATCH, SEQ, VOCAB, STEPS, LR, CLIP = 2, 20, 83, 4, 1e-2, 0.5
EPS = 1e-3  # gradients near 0 are rounding, which AdamW would make steps of
SIZES = dict(vocab_size=VOCAB, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=56,
             max_position_embeddings=SEQ, bos_token_id=None, eos_token_id=None, pad_token_id=None)
CONFIGS = {
    "llama": lambda: tf.LlamaConfig(**SIZES),  # logits by chunks
    "gemma2": lambda: tf.Gemma2Config(**SIZES | dict(pad_token_id=0), head_dim=12, sliding_window=8),  # logits with a cap
    "mixtral": lambda: tf.MixtralConfig(**SIZES, num_local_experts=3, num_experts_per_tok=2),
}


def module_of(name):
    torch.manual_seed(3)
    return tf.AutoModelForCausalLM.from_config(CONFIGS[name](), attn_implementation="eager").eval()


def examples(count):
    """Tokens and the targets after them: few count in some rows, all in one, none in others and in a whole batch."""
    tokens = torch.randint(0, VOCAB, (count, SEQ + 1), dtype=torch.int32)
    share = torch.tensor([0.1, 0.2, 0.9, 1.0, 0.3, 0.0, 0.5, 0.2, 0.0, 0.0, 0.4, 0.0, 0.7])[torch.arange(count) % 13]
    targets = torch.where(torch.rand(count, SEQ) < share[:, None], tokens[:, 1:], -100).int()
    return tokens[:, :-1].contiguous(), targets.contiguous()


class Steps:
    """Steps of a model in self.folder against a loop of PyTorch."""

    @property
    def data(self):
        return self.folder / "data.safetensors"

    def importing(self, seq):
        return BIN / "ftc", "import", self.folder / "hf", f"--batch={BATCH}", f"--seq={seq}", "-o", self.folder / "model.mlir"

    def run_program(self, *command):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment(), timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return done

    def train(self, ranks, steps, *settings, options=()):
        """Metrics of the steps, and what was printed."""
        plan, log = self.folder / "plan.bin", self.folder / "metrics.jsonl"
        log.unlink(missing_ok=True)
        self.run_program(BIN / "ftc", "compile", self.folder / "model.mlir", f"--clip={CLIP}", "--optimizer=adamw", "--weight-decay=0",
                         "--betas=0.9,0.95", f"--eps={EPS}", *settings, "-o", plan)
        launch = [BIN / "ftrun", "--standalone", f"--nproc-per-node={ranks}"] if ranks > 1 else []
        done = self.run_program(*launch, BIN / "ftexec", plan, f"--data={self.data}", f"--steps={steps}", "--shuffle=off",
                                f"--lr={LR}", "--threads=1", "--progress=off", f"--metrics={log}", *options)
        return metrics_of(log), done.stderr

    def reference(self, module, batches_of_step, batch):
        """(loss, norm of the gradient) of each step: sums over all that count, divided once."""
        module = copy.deepcopy(module)
        adamw = torch.optim.AdamW(module.parameters(), lr=LR, betas=(0.9, 0.95), eps=EPS, weight_decay=0)
        wanted = []
        for numbers in batches_of_step:
            parts = [batch(module, number) for number in numbers]
            loss = sum(total for total, _ in parts) / sum(counted for _, counted in parts)
            adamw.zero_grad()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(module.parameters(), CLIP)
            adamw.step()
            wanted.append((loss.item(), norm.item()))
        return wanted

    def check(self, module, batch, weights):
        for ranks, micro, strategy in ((1, 1, "no_shard"), (1, 3, "full_shard"), (2, 1, "zero1"), (3, 2, "full_shard"), (2, 3, "shard_grad_op")):
            with self.subTest(ranks=ranks, micro_steps=micro):
                # Micro-step j of a step is batches (j ranks) ... of it.
                steps = [range(s * ranks * micro, (s + 1) * ranks * micro) for s in range(STEPS)]
                wanted = self.reference(module, steps, batch)
                lines, _ = self.train(ranks, STEPS, f"--strategy={strategy}", f"--micro-steps={micro}", options=[f"--init={weights}"])
                ours = [(line["loss"], line["grad_norm"]) for line in lines]
                np.testing.assert_allclose(ours, wanted, rtol=5e-5)


class MaskedLossTest(Steps, unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def check_imported(self, name):
        module = module_of(name)
        module.save_pretrained(self.folder / "hf")
        self.run_program(*self.importing(SEQ))
        tokens, targets = examples(BATCH * STEPS * 6)
        save_file({"tokens": tokens, "targets": targets}, self.data)

        def batch(module, number):
            rows = slice(number * BATCH, (number + 1) * BATCH)
            logits = module(input_ids=tokens[rows].long()).logits
            total = F.cross_entropy(logits.flatten(0, 1), targets[rows].flatten().long(), reduction="sum")
            return total, int((targets[rows] >= 0).sum())

        self.check(module, batch, self.folder / "hf")

    def test_logits_by_chunks(self):
        self.check_imported("llama")

    def test_logits_with_a_cap(self):
        self.check_imported("gemma2")

    def test_experts(self):
        self.check_imported("mixtral")

    def test_a_module_that_shifts_labels(self):
        """As transformers divides when it is told `num_items_in_batch`."""
        module = module_of("llama")
        tokens, targets = examples(BATCH * STEPS * 6)
        labels = torch.cat([torch.full_like(targets[:, :1], -100), targets[:, :-1]], dim=1).long()
        rows = (tokens[:BATCH].long(), labels[:BATCH])
        exported = ft.export(module, {"input_ids": rows[0], "labels": rows[0]})  # one tensor, two inputs
        exported.save(self.folder)
        save_file({"input_ids": tokens.long(), "labels": labels}, self.folder / "data.safetensors")

        def batch(module, number):
            rows = slice(number * BATCH, (number + 1) * BATCH)
            counted = int((labels[rows, 1:] >= 0).sum())
            mean = module(input_ids=tokens[rows].long(), labels=labels[rows], num_items_in_batch=counted).loss if counted else torch.zeros(())
            return mean * counted, counted

        self.check(module, batch, self.folder / "weights.safetensors")
        explained = self.run_program(BIN / "ftc", "explain", self.folder / "plan.bin", "--world-size=2").stdout
        self.assertIn("the loss is a mean over the labels that count (0 and more) of all ranks and micro-steps\n", explained)


    def test_steps_that_count_nothing_are_skipped(self):
        """As if they were not there, but for the numbers of the steps; loss scaling is left alone."""
        self.run_program(BIN / "ftc", "model", "llama", "--preset=debug", f"--batch={BATCH}", f"--seq={SEQ}", "-o", self.folder / "model.mlir")
        tokens, targets = torch.randint(0, 256, (BATCH * 10, SEQ), dtype=torch.int32), torch.randint(0, 256, (BATCH * 10, SEQ), dtype=torch.int32)
        for precision in ([], ["--mixed-precision=fp16"]):
            rows = BATCH * 2
            save_file({"tokens": tokens, "targets": targets}, self.folder / "data.safetensors")
            whole, _ = self.train(2, 3, "--strategy=full_shard", *precision)
            empty = torch.cat([targets[:rows], torch.full_like(targets[:rows], -1), targets[rows:]])
            save_file({"tokens": torch.cat([tokens[:rows], tokens[:rows], tokens[rows:]]), "targets": empty}, self.folder / "data.safetensors")
            lines, printed = self.train(2, 4, "--strategy=full_shard", *precision)
            skipped = lines.pop(1)
            self.assertEqual((skipped["loss"], skipped["counted"], skipped["skipped"]), (None, 0, True))
            self.assertIn("step 2/4: none of its targets counts: step not applied", printed)
            keys = ("loss", "grad_norm", "loss_scale")
            self.assertEqual([[line.get(key) for key in keys] for line in lines], [[line.get(key) for key in keys] for line in whole])


if __name__ == "__main__":
    unittest.main()
