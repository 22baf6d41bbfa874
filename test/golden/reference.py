"""Training with PyTorch, as the goldens, the interoperation tests and the benchmarks need it.

Models are Hugging Face's GPT2LMHeadModel and LlamaForCausalLM, and free_transformer.py; the optimizer is torch.optim.AdamW.
"""
import numpy as np
import torch
from torch.nn import functional as F
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

import free_transformer
import weights

BETAS, EPS, WEIGHT_DECAY, CLIP = (0.9, 0.95), 1e-8, 0.1, 1.0


class CausalLM(torch.nn.Module):
    """A Hugging Face model with the loss of ours: targets are given, not shifted inside."""

    def __init__(self, model):
        super().__init__()
        self.hf = model

    def loss(self, tokens, targets, rank=0, step=0):
        logits = self.hf(input_ids=tokens, use_cache=False).logits
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def gpt2(hidden=64, layers=2, heads=4, ffn=256, vocab=256, context=64, attention="eager"):
    config = GPT2Config(vocab_size=vocab, n_positions=context, n_embd=hidden, n_layer=layers, n_head=heads,
                        n_inner=ffn, activation_function="gelu_new", layer_norm_epsilon=1e-5,
                        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0)
    config._attn_implementation = attention
    return GPT2LMHeadModel(config)


def llama(hidden=64, layers=2, heads=4, kv_heads=2, ffn=176, vocab=256, context=64, tied=False, attention="eager"):
    config = LlamaConfig(vocab_size=vocab, max_position_embeddings=context, hidden_size=hidden,
                         num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv_heads,
                         intermediate_size=ffn, rms_norm_eps=1e-5, tie_word_embeddings=tied, hidden_act="silu",
                         attention_dropout=0.0, bos_token_id=0, eos_token_id=0,
                         rope_parameters={"rope_type": "default", "rope_theta": 1e4})
    config._attn_implementation = attention
    return LlamaForCausalLM(config)


def debug_model(name):
    """A debug preset with no weights in it yet; its parameters have our names once load() has been called on it."""
    if name == "free_transformer":
        return free_transformer.FreeTransformer()
    return CausalLM({"gpt2": gpt2, "llama": llama,
                     "baseline": lambda: llama(layers=4, kv_heads=4, ffn=128, tied=True)}[name]())


def inner(model):
    """The module whose parameter names are the ones of the weight files."""
    return model.hf if isinstance(model, CausalLM) else model


def load(model, name, dtype=torch.float32, salt=weights.SALT):
    """Fills a debug model with the weights of weights.py, and checks that names and shapes are the same set."""
    model.to(dtype).train()
    parameters = dict(inner(model).named_parameters())
    shapes = {key: list(p.shape) for key, p in parameters.items()}
    if shapes != weights.SHAPES[name]:
        raise ValueError(f"{name}: parameters differ: {sorted(set(map(str, shapes.items())) ^ set(map(str, weights.SHAPES[name].items())))}")
    with torch.no_grad():
        for key, p in parameters.items():
            data = np.frombuffer(weights.values(name, key, shapes[key], salt), dtype=np.float32)
            p.copy_(torch.from_numpy(data.copy()).view(p.shape))
    return model


def batch(tokens, length, rows, rank, world, step):
    """The order of --shuffle=off: sequence k is tokens[kT .. kT + T]; numbers wrap at the last whole sequence."""
    count = (len(tokens) - 1) // length
    first = (step * world + rank) * rows
    picked = np.stack([tokens[k % count * length:][:length + 1] for k in range(first, first + rows)])
    picked = torch.from_numpy(picked.astype(np.int64))
    return picked[:, :-1], picked[:, 1:]


def adamw(model, lr, **options):
    """Weight decay on parameters of rank 2 and more only."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [{"params": [p for p in parameters if p.dim() >= 2], "weight_decay": WEIGHT_DECAY},
              {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr, betas=BETAS, eps=EPS, **options)


def train(model, tokens, length, rows, world, steps, lr):
    """Losses and gradient norms (before clipping) of a job of `world` ranks, computed one rank after the other."""
    optimizer = adamw(model, lr)
    losses, norms = [], []
    for step in range(steps):
        optimizer.zero_grad()
        total = 0.0
        for rank in range(world):
            loss = model.loss(*batch(tokens, length, rows, rank, world, step), rank=rank, step=step) / world
            loss.backward()
            total += loss.item()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        losses.append(total)
        norms.append(norm.item())
    return losses, norms
