"""Modules of one's own through ft.export: loss and every gradient are PyTorch's."""
import math
import unittest

import torch
from torch import nn
from torch.nn import functional as F

from exporting import B, T, V, ExportTest, ids, run_program
from support import BIN, CORPUS, metrics_of

D, H = 32, 4


class Attention(nn.Module):
    """`kind` of attention: plain, alibi, cap, window, qk_norm, padded."""

    def __init__(self, kind):
        super().__init__()
        self.kind, self.qkv, self.out = kind, nn.Linear(D, 3 * D), nn.Linear(D, D, bias=False)
        self.norm = nn.RMSNorm(D // H, eps=1e-6) if kind == "qk_norm" else nn.Identity()

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, H, d // H).permute(2, 0, 3, 1, 4).unbind(0)
        q, k, place = self.norm(q), self.norm(k), torch.arange(t)
        away = place[None, :] - place[:, None]
        if self.kind == "alibi":
            slopes = torch.tensor([2 ** (-8 * (i + 1) / H) for i in range(H)])
            bias = (away * slopes[:, None, None]).masked_fill(away > 0, float("-inf"))
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        elif self.kind == "window":
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=(away <= 0) & (away > -5))
        elif self.kind == "cap":
            scores = 20 * torch.tanh(torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(d // H) / 20)
            y = torch.einsum("bhij,bhjd->bhid", scores.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), float("-inf")).softmax(-1), v)
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class Experts(nn.Module):
    """Each token by two of four experts, all of which compute all tokens."""

    def __init__(self):
        super().__init__()
        self.router = nn.Linear(D, 4, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(D, 2 * D), nn.SiLU(), nn.Linear(2 * D, D)) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2, dim=-1)
        gates = torch.zeros(*x.shape[:-1], 4).scatter(-1, chosen, weights / weights.sum(-1, keepdim=True))
        return sum(gates[..., i, None] * expert(x) for i, expert in enumerate(self.experts))


class SquaredRelu(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def forward(self, x):
        return self.down(F.relu(self.up(x)).square())


class Decoder(nn.Module):
    def __init__(self, kind="plain", feed_forward=SquaredRelu, tied=True, rate=0.0, words=V):
        super().__init__()
        self.table, self.places = nn.Embedding(words, D), nn.Embedding(T, D)
        self.blocks = nn.ModuleList(nn.ModuleDict(dict(norm=nn.LayerNorm(D), attention=Attention(kind), norm2=nn.LayerNorm(D, bias=False), mlp=feed_forward()))
                                    for _ in range(2))
        self.norm, self.head, self.drop = nn.RMSNorm(D), nn.Linear(D, words, bias=False), nn.Dropout(rate)
        if tied:
            self.head.weight = self.table.weight

    def forward(self, tokens, targets):
        x = self.drop(self.table(tokens) + self.places.weight[:tokens.shape[1]])
        for block in self.blocks:
            x = x + self.drop(block["attention"](block["norm"](x)))
            x = x + self.drop(block["mlp"](block["norm2"](x)))
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def frozen(module):
    module.table.weight.requires_grad_(False)
    module.blocks[0].requires_grad_(False)
    return module


class Patches(nn.Module):
    """Pictures by a convolution of patches, a learned first token, and a depthwise convolution of the tokens."""

    def __init__(self):
        super().__init__()
        self.patch, self.first, self.place = nn.Conv2d(3, D, 8, 8), nn.Parameter(torch.randn(1, 1, D)), nn.Parameter(torch.randn(1, 17, D) * 0.02)
        self.mix, self.point, self.norm, self.head = nn.Conv1d(D, D, 3, padding=1, groups=D), nn.Conv1d(D, D, 1), nn.GroupNorm(4, D), nn.Linear(D, 5)
        self.layer = nn.TransformerEncoderLayer(D, H, 2 * D, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.register_buffer("shift", torch.linspace(-1, 1, 3).view(3, 1, 1))

    def forward(self, pixels, labels):
        x = self.patch(pixels - self.shift).flatten(2).transpose(1, 2)
        x = self.layer(torch.cat([self.first.expand(len(x), -1, -1), x], 1) + self.place)
        x = self.norm(self.point(self.mix(x.transpose(1, 2)))).mean(-1)
        logits = self.head(x)
        return {"loss": F.cross_entropy(logits, labels, label_smoothing=0.1), "accuracy": (logits.argmax(-1) == labels).float().mean()}


class Sequence(nn.Module):
    """nn.Transformer, or its encoder alone, with padding."""

    def __init__(self, whole):
        super().__init__()
        self.table, self.head = nn.Embedding(V, D, padding_idx=0), nn.Linear(D, V)
        if whole:
            self.body = nn.Transformer(D, H, 1, 1, 2 * D, dropout=0.0, batch_first=True)
        else:
            self.body = nn.TransformerEncoder(nn.TransformerEncoderLayer(D, H, 2 * D, dropout=0.0, batch_first=True), 2)
        self.whole = whole

    def forward(self, given, wanted):
        mask = nn.Transformer.generate_square_subsequent_mask(wanted.shape[1])
        if self.whole:
            x = self.body(self.table(given), self.table(wanted), tgt_mask=mask)
        else:
            x = self.body(self.table(given), src_key_padding_mask=given == 0)
        return F.cross_entropy(self.head(x).transpose(1, 2), wanted, ignore_index=0)


class Span(nn.Module):
    """Where an answer begins; one beyond the text is left out, as transformers' heads for questions do it."""

    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(V, D), nn.Linear(D, 1)

    def forward(self, tokens, begins):
        logits = self.head(self.table(tokens)).squeeze(-1)
        begins = begins.clamp(0, logits.size(1))
        return F.cross_entropy(logits, begins, ignore_index=logits.size(1))


def example(length=T):
    return ids(length), ids(length)


MODULES = {
    "plain": lambda: (Decoder(), example()),
    "ALiBi": lambda: (Decoder("alibi"), example()),
    "soft cap": lambda: (Decoder("cap"), example()),
    "sliding window": lambda: (Decoder("window"), example()),
    "QK-norm": lambda: (Decoder("qk_norm"), example()),
    "untied": lambda: (Decoder(tied=False), example()),
    "frozen parts": lambda: (frozen(Decoder()), example()),
    "experts": lambda: (Decoder(feed_forward=Experts), example()),
    "pictures": lambda: (Patches(), {"labels": torch.randint(0, 5, (B,)), "pixels": torch.randn(B, 3, 32, 32)}),
    "span of an answer": lambda: (Span(), {"tokens": ids(T), "begins": torch.randint(0, T + 3, (B,))}),
    "nn.Transformer": lambda: (Sequence(True), example()),
    "nn.TransformerEncoder": lambda: (Sequence(False), example()),
}


class Modules(ExportTest):
    def test_losses_and_gradients(self):
        self.check_all(MODULES)

    def test_ties_frozen_parts_layers_and_places(self):
        _, made = self.exported(frozen(Decoder()), example())
        self.assertIn('aliases = ["head.weight"]', made.text)
        self.assertNotIn("head.weight", made.weights)
        declared = [line for line in made.text.splitlines() if "ft.parameter" in line]
        self.assertTrue(all((", frozen" in line) == ('@"table.' in line or '@"blocks.0.' in line) for line in declared), declared)
        self.assertIn('layer = "blocks.1"', made.text)
        self.assertRegex(made.text, r'loc\("(test/interop/)?export_modules_test.py":\d+:0\)')

    def test_outputs_are_evaluated(self):
        torch.manual_seed(0)
        module, data = MODULES["pictures"]()
        folder, _ = self.exported(module, data, outputs=["accuracy"])
        with torch.no_grad():
            wanted = module(**data)
        log = folder / "m.jsonl"
        run_program(BIN / "ftexec", self.compiled(folder), f"--data={folder}/data.safetensors", f"--eval-data={folder}/data.safetensors", "--steps=0",
                    f"--init={folder}/weights.safetensors", f"--metrics={log}", "--progress=off")
        (line,) = [line for line in metrics_of(log) if "eval_loss" in line]
        self.assertAlmostEqual(line["eval_accuracy"], wanted["accuracy"].item(), places=6)
        self.assertAlmostEqual(line["eval_loss"], wanted["loss"].item(), delta=2e-5)

    def test_dropout_draws_by_streams_of_its_own(self):
        torch.manual_seed(0)
        folder, made = self.exported(Decoder(rate=0.25).train(), example())
        self.assertEqual(made.text.count("ft.dropout"), 5)
        self.assertEqual({f"stream {i} " in made.text for i in range(5)}, {True})
        plan = self.compiled(folder)
        losses = [self.step(plan, f"--seed={seed}")[0][0]["loss"] for seed in (1, 1, 2)]
        self.assertEqual(losses[0], losses[1])
        self.assertNotEqual(losses[0], losses[2])
        _, made = self.exported(Decoder(rate=0.25).eval(), example(), name="eval")
        self.assertNotIn("ft.dropout", made.text)

    def test_files_of_tokens_fill_tokens_and_targets(self):
        folder, _ = self.exported(Decoder(words=256), example())
        run_program(BIN / "ftexec", self.compiled(folder), f"--data={CORPUS}", "--steps=2", "--progress=off")


if __name__ == "__main__":
    unittest.main()
