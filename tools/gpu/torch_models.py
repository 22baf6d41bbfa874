"""GPT-2 and Llama (or Qwen2) in plain PyTorch, as fast as PyTorch users write them: fused attention, no bookkeeping."""
import torch
from torch.nn import functional as F

SHAPES = {
    "gpt2-124m": dict(family="gpt2", hidden=768, layers=12, heads=12, vocab=50257, context=1024),
    "gpt2-1.5b": dict(family="gpt2", hidden=1600, layers=48, heads=25, vocab=50257, context=1024),
    "qwen2.5-1.5b": dict(family="llama", hidden=1536, layers=28, heads=12, kv_heads=2, ffn=8960, vocab=151936, base=1e6,
                         eps=1e-6, qkv_bias=True),
    "gpt2-debug": dict(family="gpt2", hidden=64, layers=2, heads=4, vocab=256, context=64),
}


class Gpt2Block(torch.nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = torch.nn.LayerNorm(hidden), torch.nn.LayerNorm(hidden)
        self.qkv, self.out = torch.nn.Linear(hidden, 3 * hidden), torch.nn.Linear(hidden, hidden)
        self.up, self.down = torch.nn.Linear(hidden, 4 * hidden), torch.nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        batch, positions, hidden = x.shape
        q, k, v = (part.view(batch, positions, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.ln_1(x)).split(hidden, dim=2))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(batch, positions, hidden))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class Gpt2(torch.nn.Module):
    def __init__(self, hidden, layers, heads, vocab, context):
        super().__init__()
        self.tokens, self.positions = torch.nn.Embedding(vocab, hidden), torch.nn.Embedding(context, hidden)
        self.blocks = torch.nn.ModuleList(Gpt2Block(hidden, heads) for _ in range(layers))
        self.norm = torch.nn.LayerNorm(hidden)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


class LlamaBlock(torch.nn.Module):
    def __init__(self, hidden, heads, kv_heads, ffn, eps, qkv_bias):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, hidden // heads
        self.norm_1, self.norm_2 = torch.nn.RMSNorm(hidden, eps), torch.nn.RMSNorm(hidden, eps)
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


class Llama(torch.nn.Module):
    """With the head tied to the embedding."""

    def __init__(self, hidden, layers, heads, kv_heads, ffn, vocab, base, eps, qkv_bias):
        super().__init__()
        self.base, self.size = base, hidden // heads
        self.tokens = torch.nn.Embedding(vocab, hidden)
        self.blocks = torch.nn.ModuleList(LlamaBlock(hidden, heads, kv_heads, ffn, eps, qkv_bias) for _ in range(layers))
        self.norm = torch.nn.RMSNorm(hidden, eps)

    def forward(self, tokens, targets):
        x = self.tokens(tokens)
        with torch.autocast(x.device.type, enabled=False):
            frequency = self.base ** (-torch.arange(0, self.size, 2, device=x.device) / self.size)
            angle = torch.arange(tokens.shape[1], device=x.device)[:, None] * torch.cat((frequency, frequency))
            cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        for block in self.blocks:
            x = block(x, cos, sin)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def build(name):
    shape = dict(SHAPES[name])
    model = (Gpt2 if shape.pop("family") == "gpt2" else Llama)(**shape)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.02)
    return model
