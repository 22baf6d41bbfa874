"""GPT-2 and Llama (or Qwen2) in plain PyTorch, as fast as PyTorch users write them: fused attention, no bookkeeping.

The same functions of the same parameters as `ftc model` builds. Under autocast the residual stream and the norms are bf16, as in
our plans: left to itself autocast would keep both in fp32, which is slower and takes more memory.
"""
import math

import torch
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

SHAPES = {
    "gpt2-124m": dict(family="gpt2", hidden=768, layers=12, heads=12, vocab=50257, context=1024),
    "gpt2-1.5b": dict(family="gpt2", hidden=1600, layers=48, heads=25, vocab=50257, context=1024),
    "qwen2.5-1.5b": dict(family="llama", hidden=1536, layers=28, heads=12, kv_heads=2, ffn=8960, vocab=151936, base=1e6,
                         eps=1e-6, qkv_bias=True),
    "gpt2-debug": dict(family="gpt2", hidden=64, layers=2, heads=4, vocab=256, context=64),
    "qwen2.5-debug": dict(family="llama", hidden=64, layers=2, heads=4, kv_heads=2, ffn=176, vocab=256, base=1e6, eps=1e-6,
                          qkv_bias=True),
}
# What backward finds: everything; all but logits, which are made again for one chunk after the other; only what enters blocks.
KEEP = ("everything", "all but logits", "inputs of blocks")
LOSS_CHUNKS = 8


def without_autocast(x):
    return torch.autocast(x.device.type, enabled=False)


class LayerNorm(torch.nn.LayerNorm):
    def forward(self, x):
        with without_autocast(x):
            return F.layer_norm(x, self.normalized_shape, self.weight.to(x.dtype), self.bias.to(x.dtype), self.eps)


class RMSNorm(torch.nn.RMSNorm):
    def forward(self, x):
        with without_autocast(x):
            return F.rms_norm(x, self.normalized_shape, self.weight.to(x.dtype), self.eps)


class Gpt2Block(torch.nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = LayerNorm(hidden), LayerNorm(hidden)
        self.qkv, self.out = torch.nn.Linear(hidden, 3 * hidden), torch.nn.Linear(hidden, hidden)
        self.up, self.down = torch.nn.Linear(hidden, 4 * hidden), torch.nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        batch, positions, hidden = x.shape
        q, k, v = (part.view(batch, positions, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.ln_1(x)).split(hidden, dim=2))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(batch, positions, hidden))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


class LlamaBlock(torch.nn.Module):
    def __init__(self, hidden, heads, kv_heads, ffn, eps, qkv_bias):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, hidden // heads
        self.norm_1, self.norm_2 = RMSNorm(hidden, eps), RMSNorm(hidden, eps)
        self.q = torch.nn.Linear(hidden, hidden, bias=qkv_bias)
        self.k = torch.nn.Linear(hidden, kv_heads * self.size, bias=qkv_bias)
        self.v = torch.nn.Linear(hidden, kv_heads * self.size, bias=qkv_bias)
        self.out = torch.nn.Linear(hidden, hidden, bias=False)
        self.gate, self.up = torch.nn.Linear(hidden, ffn, bias=False), torch.nn.Linear(hidden, ffn, bias=False)
        self.down = torch.nn.Linear(ffn, hidden, bias=False)

    def forward(self, x, cos, sin):
        batch, positions, hidden = x.shape
        y = self.norm_1(x)
        q = rotate(self.q(y).view(batch, positions, self.heads, -1).transpose(1, 2), cos, sin)
        k = rotate(self.k(y).view(batch, positions, self.kv_heads, -1).transpose(1, 2), cos, sin)
        v = self.v(y).view(batch, positions, self.kv_heads, -1).transpose(1, 2)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(a.transpose(1, 2).reshape(batch, positions, hidden))
        y = self.norm_2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def sum_of_losses(x, weight, targets):
    return F.cross_entropy(F.linear(x, weight), targets, reduction="sum")


class Model(torch.nn.Module):
    """Embedding, blocks, norm, and a head tied to the embedding; forward gives the mean loss. dtype: of the residual stream."""

    def __init__(self, hidden, vocab, blocks, norm, dtype, keep):
        super().__init__()
        self.tokens = torch.nn.Embedding(vocab, hidden)
        self.blocks, self.norm, self.dtype, self.keep = torch.nn.ModuleList(blocks), norm, dtype, keep
        self.sum_of_losses = sum_of_losses

    def embed(self, tokens):
        """The residual stream, and what else a block takes."""
        raise NotImplementedError

    def forward(self, tokens, targets):
        x, *others = self.embed(tokens)
        for block in self.blocks:
            if self.keep == "inputs of blocks":
                x = checkpoint(block, x, *others, use_reentrant=False)
            else:
                x = block(x, *others)
        x, targets = self.norm(x).flatten(0, 1), targets.flatten()
        if self.keep == "everything":
            return self.sum_of_losses(x, self.tokens.weight, targets) / targets.numel()
        parts = zip(x.chunk(LOSS_CHUNKS), targets.chunk(LOSS_CHUNKS))
        return sum(checkpoint(self.sum_of_losses, part, self.tokens.weight, wanted, use_reentrant=False)
                   for part, wanted in parts) / targets.numel()

    def compile_parts(self):
        """Block by block: all share one compilation."""
        for block in self.blocks:
            block.compile()
        self.sum_of_losses = torch.compile(sum_of_losses)


class Gpt2(Model):
    def __init__(self, hidden, layers, heads, vocab, context, dtype, keep):
        super().__init__(hidden, vocab, (Gpt2Block(hidden, heads) for _ in range(layers)), LayerNorm(hidden), dtype, keep)
        self.positions = torch.nn.Embedding(context, hidden)

    def embed(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        return (x.to(self.dtype),)


class Llama(Model):
    def __init__(self, hidden, layers, heads, kv_heads, ffn, vocab, base, eps, qkv_bias, dtype, keep):
        super().__init__(hidden, vocab, (LlamaBlock(hidden, heads, kv_heads, ffn, eps, qkv_bias) for _ in range(layers)),
                         RMSNorm(hidden, eps), dtype, keep)
        self.base, self.size = base, hidden // heads

    def embed(self, tokens):
        x = self.tokens(tokens)
        with without_autocast(x):
            frequency = self.base ** (-torch.arange(0, self.size, 2, device=x.device) / self.size)
            angle = torch.arange(tokens.shape[1], device=x.device)[:, None] * torch.cat((frequency, frequency))
            return x.to(self.dtype), angle.cos().to(self.dtype), angle.sin().to(self.dtype)


def initialize(model, family, layers):
    """As ours: deviation 0.02, in GPT-2 less for what is added to the residual stream; no bias."""
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            added = family == "gpt2" and name.endswith(("out.weight", "down.weight"))
            torch.nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * layers) if added else 0.02)
        elif name.endswith("bias"):
            torch.nn.init.zeros_(parameter)


def build(name, device, dtype, keep=KEEP[0]):
    shape = dict(SHAPES[name])
    family = shape.pop("family")
    with torch.device(device):  # a billion normal numbers take long on a CPU
        model = (Gpt2 if family == "gpt2" else Llama)(**shape, dtype=dtype, keep=keep)
        initialize(model, family, shape["layers"])
    return model
