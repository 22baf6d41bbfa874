"""The Free Transformer (F. Fleuret, "The Free Transformer", 2025) in PyTorch, written from its formulas, for reference.

Plain and slow on purpose: masks are explicit, the mapper builds all 2^H columns and autograd differentiates it.
Works in float32 and float64.
"""
import math

import torch
from torch import nn
from torch.nn import functional as F

import philox

EPS, ROPE_BASE = 1e-5, 1e4
# Streams of ops begin here; those below belong to parameters (runtime/base/philox.h).
FIRST_OP_STREAM = 0x40000000
OP_ID = 1  # attribute `stream` of the model's only ft.sample_bits


def rms_norm(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * weight


def rotate(x):
    """RoPE, rotate-half; x [B, heads, T, head_dim], angles in float32 as Hugging Face computes them."""
    length, dim = x.shape[-2:]
    inverse = 1.0 / (ROPE_BASE ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim))
    angle = torch.outer(torch.arange(length, dtype=torch.float32), inverse)
    angle = torch.cat([angle, angle], -1)
    half = torch.cat([-x[..., dim // 2:], x[..., :dim // 2]], -1)
    return x * angle.cos().to(x.dtype) + half * angle.sin().to(x.dtype)


def linear(n_out, n_in):
    return nn.Linear(n_in, n_out, bias=False)


class Norm(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))

    def forward(self, x):
        return rms_norm(x, self.weight)


class Attention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(self, name, linear(hidden, hidden))

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(self, q_in, kv_in, causal):
        q, k = rotate(self.split(self.q_proj(q_in))), rotate(self.split(self.k_proj(kv_in)))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if causal:
            length = scores.shape[-1]
            future = torch.ones(length, length, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(future, float("-inf"))
        out = scores.softmax(-1) @ self.split(self.v_proj(kv_in))
        return self.o_proj(out.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, hidden, ffn):
        super().__init__()
        self.gate_proj, self.up_proj = linear(ffn, hidden), linear(ffn, hidden)
        self.down_proj = linear(hidden, ffn)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    """a = q + Wo Attn(RMS(q), RMS(kv)); y = a + W2( SiLU(W1 RMS(a)) * W3 RMS(a) )."""

    def __init__(self, hidden, heads, ffn):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = Norm(hidden), Norm(hidden)
        self.self_attn, self.mlp = Attention(hidden, heads), Mlp(hidden, ffn)

    def forward(self, q, kv, causal=True):
        a = q + self.self_attn(self.input_layernorm(q), self.input_layernorm(kv), causal)
        return a + self.mlp(self.post_attention_layernorm(a))


class Encoder(nn.Module):
    def __init__(self, hidden, heads, ffn, bits):
        super().__init__()
        self.zeta = nn.Parameter(torch.zeros(hidden))
        self.block, self.norm, self.readout = Block(hidden, heads, ffn), Norm(hidden), linear(bits, hidden)

    def forward(self, x):
        return self.readout(self.norm(self.block(self.zeta.expand_as(x), x, causal=False)))


class PostSampler(nn.Module):
    def __init__(self, bits, hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1 << bits, hidden))


def binary_mapper(logits, uniform):
    """logits, uniform [..., H] -> (Z [..., 2^H], distance of the nearest sample to its threshold).

    Forward a one-hot vector; backward the gradient of G, the probability of every index.
    """
    bits = logits.shape[-1]
    p = torch.sigmoid(logits)
    sample = (uniform < p).to(torch.int64)
    index = (sample << torch.arange(bits)).sum(-1)
    u = (torch.arange(1 << bits)[:, None] >> torch.arange(bits)) & 1  # [2^H, H]
    log_g = (F.logsigmoid(logits)[..., None, :] * u + F.logsigmoid(-logits)[..., None, :] * (1 - u)).sum(-1)
    g = log_g.exp()
    y = F.one_hot(index, 1 << bits).to(logits.dtype)
    return y + (g - g.detach()), (uniform - p).abs().min().item()


class FreeTransformer(nn.Module):
    def __init__(self, hidden=64, layers=4, heads=4, ffn=128, vocab=256, bits=6, beta=1.0, kappa=math.log(2) / 2):
        super().__init__()
        self.bits, self.beta, self.kappa, self.seed = bits, beta, kappa, 42
        model = nn.Module()
        model.embed_tokens = nn.Embedding(vocab, hidden)
        model.layers = nn.ModuleList(Block(hidden, heads, ffn) for _ in range(layers))
        model.encoder = Encoder(hidden, heads, ffn, bits)
        model.post_sampler = PostSampler(bits, hidden)
        model.norm = Norm(hidden)
        self.model = model
        self.least_margin = 1.0

    def loss(self, tokens, targets, rank, step):
        """tokens, targets [B, T] of one rank; step counts from 0. Cross entropy + beta * mean of max(0, KL - kappa)."""
        m, half = self.model, len(self.model.layers) // 2
        x = m.embed_tokens(tokens)
        for block in m.layers[:half]:
            x = block(x, x)
        logits = m.encoder(x)  # [B, T, H]
        first = rank * tokens.numel()
        element = (first + torch.arange(tokens.numel()))[:, None] * self.bits + torch.arange(self.bits)
        uniform = torch.from_numpy(philox.uniform(self.seed, FIRST_OP_STREAM + OP_ID, step, element.numpy()))
        z, margin = binary_mapper(logits, uniform.view_as(logits))
        self.least_margin = min(self.least_margin, margin)
        kv = x + z @ m.post_sampler.weight
        for i, block in enumerate(m.layers[half:]):
            x = block(x, kv if i == 0 else x)
        out = m.norm(x) @ m.embed_tokens.weight.T
        entropy = F.softplus(logits) - logits * torch.sigmoid(logits)
        kl = self.bits * math.log(2) - entropy.sum(-1)
        return (F.cross_entropy(out.flatten(0, 1), targets.flatten())
                + self.beta * (kl - self.kappa).clamp(min=0).mean())
