"""Training with PyTorch, as the goldens, the interoperation tests and the benchmarks need it.

Models are those of transformers, and free_transformer.py; the optimizer is torch.optim.AdamW.
"""
import re

import numpy as np
import torch
import transformers
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


class MixtureLM(CausalLM):
    """With the load-balancing loss of transformers."""

    def loss(self, tokens, targets, rank=0, step=0):
        out = self.hf(input_ids=tokens, use_cache=False, output_router_logits=True)
        return F.cross_entropy(out.logits.flatten(0, 1), targets.flatten()) + self.hf.config.router_aux_loss_coef * out.aux_loss


class Classifier(torch.nn.Module):
    """`inputs` names what the module takes, in the order of ours; labels are last."""

    def __init__(self, model, *inputs):
        super().__init__()
        self.hf, self.inputs = model, inputs

    def loss(self, *values, rank=0, step=0):
        given = dict(zip(self.inputs, values))
        if "lengths" in given:
            lengths, positions = given.pop("lengths"), given["input_ids"].shape[1]
            given["attention_mask"] = (torch.arange(positions)[None, :] < lengths[:, None]).long()
        return F.cross_entropy(self.hf(**given).logits.flatten(0, -2), values[-1].flatten())


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


def decoder(config_class, model_class, wrapper=CausalLM, attention="eager", **options):
    """The debug presets of variants of Llama."""
    sizes = dict(vocab_size=256, max_position_embeddings=64, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                 num_key_value_heads=2, head_dim=32, intermediate_size=176, rms_norm_eps=1e-6, bos_token_id=0, eos_token_id=0,
                 pad_token_id=None, tie_word_embeddings=True)
    config = config_class(**sizes | options)
    config._attn_implementation = attention
    config._experts_implementation = "eager"  # others know no float64
    return wrapper(model_class(config))


def rope(theta):
    return {"rope_type": "default", "rope_theta": theta}


def qwen3():
    return decoder(transformers.Qwen3Config, transformers.Qwen3ForCausalLM, rope_parameters=rope(1e6))


GEMMA = dict(sliding_window=16, query_pre_attn_scalar=24)


def gemma2():
    return decoder(transformers.Gemma2Config, transformers.Gemma2ForCausalLM, rope_parameters=rope(1e4), **GEMMA)


def gemma3():
    layers = ["sliding_attention", "sliding_attention", "full_attention"]
    return decoder(transformers.Gemma3TextConfig, transformers.Gemma3ForCausalLM, num_hidden_layers=3, num_key_value_heads=1,
                   layer_types=layers, rope_parameters={"full_attention": rope(1e6), "sliding_attention": rope(1e4)}, **GEMMA)


def mixtral():
    return decoder(transformers.MixtralConfig, transformers.MixtralForCausalLM, MixtureLM, head_dim=16, intermediate_size=96,
                   rms_norm_eps=1e-5, num_local_experts=4, num_experts_per_tok=2, router_aux_loss_coef=0.02,
                   tie_word_embeddings=False, rope_parameters=rope(1e6))


def qwen3_moe():
    return decoder(transformers.Qwen3MoeConfig, transformers.Qwen3MoeForCausalLM, MixtureLM, moe_intermediate_size=96,
                   num_experts=6, num_experts_per_tok=3, router_aux_loss_coef=0.001, norm_topk_prob=False,
                   tie_word_embeddings=False, rope_parameters=rope(1e6))


def vit():
    config = transformers.ViTConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256, image_size=32,
                                    patch_size=8, num_labels=10)
    config._attn_implementation = "eager"
    return Classifier(transformers.ViTForImageClassification(config), "pixel_values")


def of_bert(model_class, **options):
    config = transformers.BertConfig(vocab_size=256, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256,
                                     max_position_embeddings=64, pad_token_id=None, hidden_dropout_prob=0.0,
                                     attention_probs_dropout_prob=0.0, **options)
    config._attn_implementation = "eager"
    return Classifier(model_class(config), "input_ids", "token_type_ids", "lengths")


def bert():
    return of_bert(transformers.BertForMaskedLM)


def bert_classifier():
    return of_bert(transformers.BertForSequenceClassification, num_labels=3)


def debug_model(name):
    """A debug preset with no weights in it yet; its parameters have our names once load() has been called on it."""
    if name == "free_transformer":
        return free_transformer.FreeTransformer()
    variants = {model.__name__: model for model in (qwen3, gemma2, gemma3, mixtral, qwen3_moe, vit, bert, bert_classifier)}
    if name in variants:
        return variants[name]()
    return CausalLM({"gpt2": gpt2, "llama": llama,
                     "baseline": lambda: llama(layers=4, kv_heads=4, ffn=128, tied=True)}[name]())


# What modules of transformers 5 call parameters -> what their files do.
RENAMED = {r"^vit\.layers\.": "vit.encoder.layer.", r"\.attention\.q_proj\.": ".attention.attention.query.",
           r"\.attention\.k_proj\.": ".attention.attention.key.", r"\.attention\.v_proj\.": ".attention.attention.value.",
           r"\.attention\.o_proj\.": ".attention.output.dense.", r"\.mlp\.fc1\.": ".intermediate.dense.",
           r"\.mlp\.fc2\.": ".output.dense."}


def named_parameters(model):
    """With the names of weight files."""
    for name, parameter in inner(model).named_parameters():
        if isinstance(model, Classifier) and name.startswith("vit."):
            for module, file in RENAMED.items():
                name = re.sub(module, file, name)
        yield name, parameter


def inner(model):
    """The module whose parameter names are the ones of the weight files."""
    return getattr(model, "hf", model)


def load(model, name, dtype=torch.float32, salt=weights.SALT):
    """Fills a debug model with the weights of weights.py, and checks that names and shapes are the same set."""
    model.to(dtype).train()
    parameters = dict(named_parameters(model))
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


def example_batch(stored, rows, rank, world, step):
    """The same order for examples of a model of other inputs, which are name -> (shape, array)."""
    first = (step * world + rank) * rows
    picked = [k % weights.EXAMPLES for k in range(first, first + rows)]
    return [torch.from_numpy(np.array(data).reshape(shape)[picked]) for shape, data in stored.values()]


def adamw(model, lr, **options):
    """Weight decay on parameters of rank 2 and more only."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [{"params": [p for p in parameters if p.dim() >= 2], "weight_decay": WEIGHT_DECAY},
              {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr, betas=BETAS, eps=EPS, **options)


def train(model, tokens, length, rows, world, steps, lr):
    """Losses and gradient norms (before clipping) of a job of `world` ranks, computed one rank after the other. `tokens` may be
    stored examples."""
    optimizer = adamw(model, lr)
    losses, norms = [], []
    for step in range(steps):
        optimizer.zero_grad()
        total = 0.0
        batches = [example_batch(tokens, rows, rank, world, step) if isinstance(tokens, dict) else batch(tokens, length, rows, rank, world, step)
                   for rank in range(world)]
        counted = [int((picked[-1] >= 0).sum()) for picked in batches]  # targets: a rank's loss weighs as many
        for rank, picked in enumerate(batches):
            dtype = next(model.parameters()).dtype
            picked = [value.to(dtype) if value.is_floating_point() else value for value in picked]
            loss = model.loss(*picked, rank=rank, step=step) * (counted[rank] / sum(counted))
            loss.backward()
            total += loss.item()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        losses.append(total)
        norms.append(norm.item())
    return losses, norms
