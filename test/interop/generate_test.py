"""--generate and --evaluate of folders that transformers saves: its own greedy continuation, token for token, and its loss."""
import re
import subprocess
import sys
import unittest

import numpy as np
import torch
import transformers as tf
from torch.nn import functional as F

import support

sys.path.insert(0, str(support.ROOT / "tools" / "python"))
import ft

tf.logging.set_verbosity_error()
tf.logging.disable_progress_bar()

BATCH, SEQ, VOCAB = 2, 48, 256  # bytes: a prompt is text
SIZES = dict(vocab_size=VOCAB, hidden_size=60, num_hidden_layers=2, intermediate_size=92, max_position_embeddings=SEQ, num_attention_heads=6,
             num_key_value_heads=2, bos_token_id=None, eos_token_id=None, pad_token_id=None)
CONFIGS = {
    "gpt2": tf.GPT2Config(vocab_size=VOCAB, n_positions=SEQ, n_embd=60, n_layer=2, n_head=4, embd_pdrop=0.1, resid_pdrop=0.1, attn_pdrop=0.1,
                          bos_token_id=None, eos_token_id=None),
    "llama": tf.LlamaConfig(**SIZES),
    "gemma2": tf.Gemma2Config(**(SIZES | dict(head_dim=14, sliding_window=6, query_pre_attn_scalar=20, pad_token_id=0,
                                             tie_word_embeddings=False))),
    "mixtral": tf.MixtralConfig(**SIZES, num_local_experts=4, num_experts_per_tok=2, output_router_logits=True, router_aux_loss_coef=0.3),
}
PROMPT = "Permission is hereby"


class GenerateTest(support.InteropTest):
    def prepare(self, name):
        """A module with weights that tell tokens apart, and its folder; the model of ours."""
        torch.manual_seed(11)
        module = tf.AutoModelForCausalLM.from_config(CONFIGS[name], attn_implementation="eager").eval()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.15)
        folder, mlir = self.folder / name, self.folder / f"{name}.mlir"
        module.save_pretrained(folder)
        self.run_tool("ftc", "import", folder, f"--batch={BATCH}", f"--seq={SEQ}", "-o", mlir)
        return module, folder, mlir

    def run_tool(self, tool, *options):
        done = subprocess.run([support.BIN / tool, *options], env=support.environment(), capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def plan(self, mlir, *options):
        path = self.folder / ("-".join([mlir.stem, *options]).replace("=", "_") + ".bin")
        self.run_tool("ftc", "compile", mlir, f"--code={support.LEVEL}", *options, "-o", path)
        return path

    def generate(self, plan, folder, count, *options, world=1):
        out = self.folder / "generated.jsonl"
        done = self.run_tool("ftrun", f"--nproc-per-node={world}", "--standalone", support.BIN / "ftexec", plan, f"--init={folder}",
                             f"--generate={count}", f"--prompt={PROMPT}", f"--metrics={out}", "--threads=1", *options)
        (row,) = support.metrics_of(out)
        self.assertEqual(re.sub(r"^\[rank 0\] ", "", done.stdout, flags=re.MULTILINE), row["sample_text"] + "\n")
        return row["sample_tokens"]

    def slowly(self, module, count):
        """All of the window anew for each token."""
        ids = list(PROMPT.encode())
        for _ in range(count):
            with torch.no_grad():
                ids.append(int(module(input_ids=torch.tensor([ids[-SEQ:]])).logits[0, -1].argmax()))
        return ids[len(PROMPT):]

    def test_continues_as_transformers_does(self):
        for name in CONFIGS:
            with self.subTest(name):
                module, folder, mlir = self.prepare(name)
                count = SEQ - len(PROMPT)
                with torch.no_grad():
                    theirs = module.generate(torch.tensor([list(PROMPT.encode())]), do_sample=False, max_new_tokens=count)
                expected = theirs[0, len(PROMPT):].tolist()
                self.assertGreater(len(set(expected)), 3, "a model that always says the same shows nothing")
                for strategy in ("no_shard", "full_shard"):
                    plan = self.plan(mlir, f"--strategy={strategy}", "--evaluate", "--sample")
                    for world in (1, 3):
                        self.assertEqual(self.generate(plan, folder, count, world=world), expected, (strategy, world))
                training = self.plan(mlir, "--strategy=full_shard", "--sample")
                self.assertEqual(self.generate(training, folder, count), expected)

    def test_a_long_text_is_continued_by_what_a_sequence_holds(self):
        for name in ("gpt2", "llama"):
            with self.subTest(name):
                module, folder, mlir = self.prepare(name)
                plan = self.plan(mlir, "--strategy=full_shard", "--evaluate", "--sample")
                self.assertEqual(self.generate(plan, folder, 2 * SEQ), self.slowly(module, 2 * SEQ))

    def test_modules_that_shift_their_labels(self):
        """Exported with their own loss, with a mask of attention and without."""
        class Plain(torch.nn.Module):
            def __init__(self, model):
                super().__init__()
                self.model = model

            def forward(self, input_ids, labels):
                return self.model(input_ids=input_ids, labels=labels, use_cache=False).loss

        class Masked(Plain):
            def forward(self, input_ids, attention_mask, labels):
                return self.model(input_ids=input_ids, attention_mask=attention_mask, labels=labels, use_cache=False).loss

        module, _, _ = self.prepare("llama")
        ids, count = torch.randint(0, VOCAB, (BATCH, SEQ), dtype=torch.int32), SEQ - len(PROMPT)
        expected = module.generate(torch.tensor([list(PROMPT.encode())]), do_sample=False, max_new_tokens=count)[0, len(PROMPT):].tolist()
        for wrapper, inputs in ((Plain, (ids, ids.long())), (Masked, (ids, torch.ones_like(ids), ids.long()))):
            with self.subTest(wrapper.__name__):
                folder = self.folder / wrapper.__name__
                ft.export(wrapper(module), inputs).save(folder)
                plan = self.plan(folder / "model.mlir", "--strategy=full_shard", "--evaluate", "--sample")
                self.assertEqual(self.generate(plan, folder / "weights.safetensors", count), expected)

    def test_loss_is_that_of_transformers(self):
        data = self.folder / "held-out.txt"
        data.write_bytes(support.CORPUS.read_bytes()[:7 * SEQ + 5])
        tokens = torch.tensor(np.frombuffer(data.read_bytes(), dtype=np.uint8).astype(np.int64))
        for name in ("gpt2", "llama", "gemma2"):
            module, folder, mlir = self.prepare(name)
            rows = torch.stack([tokens[i * SEQ:(i + 1) * SEQ + 1] for i in range(7)])
            with torch.no_grad():
                logits = module(input_ids=rows[:, :-1]).logits
            expected = F.cross_entropy(logits.reshape(-1, VOCAB), rows[:, 1:].reshape(-1)).item()
            right = (logits.argmax(-1) == rows[:, 1:]).double().mean().item()
            for strategy, world in (("no_shard", 1), ("full_shard", 3)):
                with self.subTest(name, strategy=strategy):
                    plan, out = self.plan(mlir, f"--strategy={strategy}", "--evaluate"), self.folder / "evaluation.jsonl"
                    self.run_tool("ftrun", f"--nproc-per-node={world}", "--standalone", support.BIN / "ftexec", plan, "--evaluate",
                                  f"--data={data}", f"--init={folder}", f"--metrics={out}", "--threads=1")
                    (row,) = support.metrics_of(out)
                    self.assertEqual(row["eval_tokens"], 7 * SEQ)
                    self.assertLess(abs(row["eval_loss"] / expected - 1), 1e-5)
                    self.assertLess(abs(row["eval_perplexity"] / np.exp(expected) - 1), 1e-4)
                    # Logits of a capped head are held anyway; those of the others are not.
                    self.assertEqual("eval_accuracy" in row, name == "gemma2")
                    if name == "gemma2":
                        self.assertLess(abs(row["eval_accuracy"] - right), 1e-6)


if __name__ == "__main__":
    unittest.main()
