"""Eleven families of models as torch.export sees them, written with primitives: loss and gradients are PyTorch's within 1e-5."""
import pathlib
import subprocess
import tempfile
import unittest

import safetensors.torch
import torch
import transformers as tf
from torch import nn
from torch.nn import functional as F

from exported_model import Exported
from support import BIN, environment, metrics_of

B, T, V = 2, 32, 97
SIZES = dict(vocab_size=V, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64)
HEADS = dict(num_key_value_heads=2, head_dim=16)


class LanguageModel(nn.Module):
    def __init__(self, config, attention="sdpa"):
        super().__init__()
        self.model = tf.AutoModelForCausalLM.from_config(config, attn_implementation=attention)

    def forward(self, input_ids, targets):
        return F.cross_entropy(self.model(input_ids=input_ids, use_cache=False).logits.flatten(0, 1), targets.flatten())


class Classifier(nn.Module):
    def __init__(self, model, name):
        super().__init__()
        self.model, self.name = model, name

    def forward(self, given, labels):
        return F.cross_entropy(self.model(**{self.name: given}).logits, labels)


class AlibiBlock(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h, self.norms = h, nn.ModuleList([nn.LayerNorm(d), nn.LayerNorm(d)])
        self.qkv, self.out, self.up, self.down = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4).unbind(0)
        place = torch.arange(t)
        slopes = torch.tensor([2 ** (-8 * (i + 1) / self.h) for i in range(self.h)])
        bias = (place[None, :] - place[:, None]) * slopes[:, None, None]
        bias = bias.masked_fill(place[None, :] > place[:, None], float("-inf"))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.relu(self.up(self.norms[1](x))).square())


class Alibi(nn.Module):
    """ALiBi, squared ReLUs."""

    def __init__(self, d=64, h=4):
        super().__init__()
        self.table, self.norm = nn.Embedding(V, d), nn.LayerNorm(d)
        self.blocks = nn.ModuleList(AlibiBlock(d, h) for _ in range(2))

    def forward(self, input_ids, targets):
        x = self.table(input_ids)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(F.linear(self.norm(x), self.table.weight).flatten(0, 1), targets.flatten())


MODELS = {
    "gpt2": lambda: LanguageModel(tf.GPT2Config(vocab_size=V, n_embd=64, n_layer=2, n_head=4, n_positions=64)),
    "llama": lambda: LanguageModel(tf.LlamaConfig(**SIZES, num_key_value_heads=2)),
    "qwen3": lambda: LanguageModel(tf.Qwen3Config(**SIZES, **HEADS)),
    "mistral": lambda: LanguageModel(tf.MistralConfig(**SIZES, num_key_value_heads=2, sliding_window=16)),
    "gemma2": lambda: LanguageModel(tf.Gemma2Config(**SIZES, **HEADS, sliding_window=16), "eager"),
    "gemma3": lambda: LanguageModel(tf.Gemma3TextConfig(**SIZES, **HEADS, sliding_window=16)),
    "gptneox": lambda: LanguageModel(tf.GPTNeoXConfig(**SIZES)),
    "mixtral": lambda: LanguageModel(tf.MixtralConfig(**SIZES, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2)),
    "bert": lambda: Classifier(tf.BertForSequenceClassification(tf.BertConfig(**SIZES, num_labels=3)), "input_ids"),
    "vit": lambda: Classifier(tf.ViTForImageClassification(tf.ViTConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, image_size=32,
                                                                         intermediate_size=128, patch_size=8, num_labels=10)), "pixel_values"),
    "alibi": Alibi,
}


def example(name):
    if name == "vit":
        return torch.randn(B, 3, 32, 32), torch.randint(0, 10, (B,))
    return torch.randint(0, V, (B, T)), torch.randint(0, 3, (B,)) if name == "bert" else torch.randint(0, V, (B, T))


class ExportedModels(unittest.TestCase):
    def run_program(self, *command):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment(), timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])

    def test_loss_and_gradients_are_those_of_pytorch(self):
        for name in MODELS:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                self.check(name, pathlib.Path(folder))

    def check(self, name, folder):
        torch.manual_seed(0)
        module, given = MODELS[name]().eval(), example(name)
        with torch.no_grad():
            for p in module.parameters():  # norms and biases that no model begins with
                p.add_(0.02 * torch.randn_like(p))
        exported = Exported(module, given)
        loss = module(*given)
        loss.backward()
        model, init, data, plan = (folder / n for n in ("model.mlir", "init.safetensors", "data.safetensors", "plan.bin"))
        weights, log = folder / "weights.safetensors", folder / "metrics.jsonl"
        model.write_text(exported.text)
        safetensors.torch.save_file({key: value.contiguous() for key, value in exported.parameters.items()}, init)
        safetensors.torch.save_file({**exported.inputs, **exported.constants}, data)
        self.run_program(BIN / "ftc", "compile", model, "--strategy=full_shard", "--optimizer=sgd", "--weight-decay=0", "--clip=0", "-o", plan)
        self.run_program(BIN / "ftexec", plan, f"--data={data}", "--steps=1", "--shuffle=off", "--lr=1", f"--init={init}",
                         f"--save-weights={weights}", f"--metrics={log}", "--progress=off", "--threads=1")
        self.assertAlmostEqual(metrics_of(log)[0]["loss"], loss.item(), delta=1e-5 * loss.item())
        after, parameters = safetensors.torch.load_file(weights), dict(module.named_parameters())
        largest = max(float(p.grad.abs().max()) for p in parameters.values() if p.grad is not None)
        for key, before in exported.parameters.items():
            wanted = parameters[key].grad
            wanted = torch.zeros_like(before) if wanted is None else wanted
            got = before - after[key]
            # The updated weights are rounded.
            error, allowed = float((got - wanted).abs().max()), 1e-5 * largest + 1.2e-7 * float((before.abs() + wanted.abs()).max())
            self.assertLess(error, allowed, f"gradient of {key}")


if __name__ == "__main__":
    unittest.main()
