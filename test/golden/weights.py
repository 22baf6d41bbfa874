"""Initial weights of the debug presets, by formula: the same numbers for PyTorch and for us, with no file to store.

    weights.py MODEL -o weights.safetensors        (Python's standard library only)
    weights.py MODEL --data -o data.safetensors    examples, of a model that takes other inputs than tokens and targets; else nothing

Element i of a tensor is  base + half * (2 u - 1),  u = (splitmix64(h + i) >> 40) / 2^24  in [0, 1),  where h is the
FNV-1a hash (64 bits) of "MODEL/NAME#SALT"; it is rounded to the nearest float32. No tensor is constant: a bias or a
norm that is forgotten shows in the loss.
"""
import argparse
import array
import json
import os
import struct
import sys

MASK = (1 << 64) - 1
HIDDEN, VOCAB, CONTEXT = 64, 256, 64
# Chosen so that no sample of the Free Transformer's 20 golden steps lies closer to its threshold than float32's
# rounding can move it (make_goldens.py prints the smallest distance).
SALT = 9


def gpt2_shapes(layers=2, ffn=256):
    """Names and shapes as in Hugging Face's GPT2LMHeadModel, without the tied head; Conv1D weights are [in, out]."""
    d = HIDDEN
    shapes = {"transformer.wte.weight": [VOCAB, d], "transformer.wpe.weight": [CONTEXT, d]}
    for i in range(layers):
        p = f"transformer.h.{i}."
        for norm in ("ln_1", "ln_2"):
            shapes[p + norm + ".weight"] = [d]
            shapes[p + norm + ".bias"] = [d]
        for name, n_in, n_out in (("attn.c_attn", d, 3 * d), ("attn.c_proj", d, d),
                                  ("mlp.c_fc", d, ffn), ("mlp.c_proj", ffn, d)):
            shapes[p + name + ".weight"] = [n_in, n_out]
            shapes[p + name + ".bias"] = [n_out]
    shapes["transformer.ln_f.weight"] = [d]
    shapes["transformer.ln_f.bias"] = [d]
    return shapes


def block_shapes(prefix, kv_dim, ffn):
    """One Llama block; Linear weights are [out, in]."""
    d = HIDDEN
    return {prefix + "input_layernorm.weight": [d],
            prefix + "self_attn.q_proj.weight": [d, d],
            prefix + "self_attn.k_proj.weight": [kv_dim, d],
            prefix + "self_attn.v_proj.weight": [kv_dim, d],
            prefix + "self_attn.o_proj.weight": [d, d],
            prefix + "post_attention_layernorm.weight": [d],
            prefix + "mlp.gate_proj.weight": [ffn, d],
            prefix + "mlp.up_proj.weight": [ffn, d],
            prefix + "mlp.down_proj.weight": [d, ffn]}


def llama_shapes(layers=2, kv_dim=32, ffn=176, tied=False):
    shapes = {"model.embed_tokens.weight": [VOCAB, HIDDEN]}
    for i in range(layers):
        shapes.update(block_shapes(f"model.layers.{i}.", kv_dim, ffn))
    shapes["model.norm.weight"] = [HIDDEN]
    if not tied:
        shapes["lm_head.weight"] = [VOCAB, HIDDEN]
    return shapes


def free_transformer_shapes(layers=4, ffn=128, bits=6):
    shapes = llama_shapes(layers, HIDDEN, ffn, tied=True)
    shapes["model.encoder.zeta"] = [HIDDEN]
    shapes.update(block_shapes("model.encoder.block.", HIDDEN, ffn))
    shapes["model.encoder.norm.weight"] = [HIDDEN]
    shapes["model.encoder.readout.weight"] = [bits, HIDDEN]
    shapes["model.post_sampler.weight"] = [1 << bits, HIDDEN]
    return shapes


def decoder_shapes(layers=2, kv_heads=2, head=32, ffn=176, qk_norm=False, gemma=False, experts=0, tied=True):
    """A Llama with 4 heads of their own size, and what variants of it have."""
    d, shapes = HIDDEN, {"model.embed_tokens.weight": [VOCAB, HIDDEN]}
    for i in range(layers):
        p = f"model.layers.{i}."
        block = block_shapes(p, kv_heads * head, ffn)
        block[p + "self_attn.q_proj.weight"] = [4 * head, d]
        block[p + "self_attn.o_proj.weight"] = [d, 4 * head]
        if qk_norm:
            block |= {p + "self_attn.q_norm.weight": [head], p + "self_attn.k_norm.weight": [head]}
        if gemma:
            block |= {p + "pre_feedforward_layernorm.weight": [d], p + "post_feedforward_layernorm.weight": [d]}
        if experts:
            block = {name: shape for name, shape in block.items() if ".mlp." not in name}
            block |= {p + "mlp.gate.weight": [experts, d], p + "mlp.experts.gate_up_proj": [experts, 2 * ffn, d],
                      p + "mlp.experts.down_proj": [experts, d, ffn]}
        shapes |= block
    shapes["model.norm.weight"] = [d]
    return shapes if tied else shapes | {"lm_head.weight": [VOCAB, d]}


def dense_shapes(name, n_in, n_out):
    return {name + ".weight": [n_out, n_in], name + ".bias": [n_out]}


def norm_shapes(name):
    return {name + ".weight": [HIDDEN], name + ".bias": [HIDDEN]}


def vit_shapes(layers=2, ffn=256, image=32, patch=8, labels=10):
    d, e = HIDDEN, "vit.embeddings."
    shapes = {e + "cls_token": [1, 1, d], e + "position_embeddings": [1, (image // patch) ** 2 + 1, d],
              e + "patch_embeddings.projection.weight": [d, 3, patch, patch], e + "patch_embeddings.projection.bias": [d]}
    for i in range(layers):
        p = f"vit.encoder.layer.{i}."
        for name in ("query", "key", "value"):
            shapes |= dense_shapes(p + "attention.attention." + name, d, d)
        shapes |= dense_shapes(p + "attention.output.dense", d, d) | dense_shapes(p + "intermediate.dense", d, ffn)
        shapes |= dense_shapes(p + "output.dense", ffn, d)
        shapes |= norm_shapes(p + "layernorm_before") | norm_shapes(p + "layernorm_after")
    return shapes | norm_shapes("vit.layernorm") | dense_shapes("classifier", d, labels)


def bert_shapes(layers=2, ffn=256, labels=0):
    d, e, c = HIDDEN, "bert.embeddings.", "cls.predictions."
    shapes = {e + "word_embeddings.weight": [VOCAB, d], e + "position_embeddings.weight": [CONTEXT, d],
              e + "token_type_embeddings.weight": [2, d]} | norm_shapes(e + "LayerNorm")
    for i in range(layers):
        p = f"bert.encoder.layer.{i}."
        for name in ("query", "key", "value"):
            shapes |= dense_shapes(p + "attention.self." + name, d, d)
        shapes |= dense_shapes(p + "attention.output.dense", d, d) | norm_shapes(p + "attention.output.LayerNorm")
        shapes |= dense_shapes(p + "intermediate.dense", d, ffn) | dense_shapes(p + "output.dense", ffn, d)
        shapes |= norm_shapes(p + "output.LayerNorm")
    if labels:
        return shapes | dense_shapes("bert.pooler.dense", d, d) | dense_shapes("classifier", d, labels)
    return shapes | {c + "bias": [VOCAB]} | dense_shapes(c + "transform.dense", d, d) | norm_shapes(c + "transform.LayerNorm")


SHAPES = {"gpt2": gpt2_shapes(),
          "llama": llama_shapes(),
          "baseline": llama_shapes(4, HIDDEN, 128, tied=True),
          "free_transformer": free_transformer_shapes(),
          "qwen3": decoder_shapes(qk_norm=True),
          "gemma2": decoder_shapes(gemma=True),
          "gemma3": decoder_shapes(3, 1, gemma=True, qk_norm=True),
          "mixtral": decoder_shapes(head=16, ffn=96, experts=4, tied=False),
          "qwen3_moe": decoder_shapes(ffn=96, qk_norm=True, experts=6, tied=False),
          "vit": vit_shapes(),
          "bert": bert_shapes(),
          "bert_classifier": bert_shapes(labels=3)}

# Models of other inputs -> name, type and shape of an example, and what a number of 24 bits becomes.
BERT_INPUTS = {"tokens": ("I32", [CONTEXT], lambda u: u % VOCAB), "token_types": ("I32", [CONTEXT], lambda u: u % 2),
               "lengths": ("I32", [], lambda u: 1 + u % CONTEXT)}
INPUTS = {"vit": {"pixels": ("F32", [3, 32, 32], lambda u: 2.0 ** -23 * u - 1), "labels": ("I64", [], lambda u: u % 10)},
          "bert": BERT_INPUTS | {"labels": ("I64", [CONTEXT], lambda u: u // 4 % VOCAB if u % 4 == 0 else -100)},
          "bert_classifier": BERT_INPUTS | {"labels": ("I64", [], lambda u: u % 3)}}
EXAMPLES = 96
CODES = {"F32": "f", "I32": "i", "I64": "q"}


def base_and_half(model, name, shape):
    """The centre and the half width of the values of a tensor."""
    if len(shape) == 1 and name.endswith("weight"):
        return 0.0 if model.startswith("gemma") else 1.0, 0.125  # norms
    if name.endswith("mlp.gate.weight"):
        return 0.0, 0.5  # probabilities of experts that differ
    if name == "model.encoder.readout.weight":
        return 0.0, 0.25  # logits of order one: KL falls on both sides of its clamp
    return 0.0, 0.0625


def fnv1a(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return h


def splitmix64(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def values(model, name, shape, salt=SALT):
    """A tensor's elements in row-major order, as array('f')."""
    count = 1
    for n in shape:
        count *= n
    h = fnv1a(f"{model}/{name}#{salt}")
    base, half = base_and_half(model, name, shape)
    scale = half * 2.0 ** -23
    return array.array("f", (base - half + scale * (splitmix64((h + i) & MASK) >> 40) for i in range(count)))


def examples(model, salt=SALT):
    """name -> (shape, array) of the inputs of EXAMPLES examples."""
    result = {}
    for name, (dtype, shape, value) in INPUTS[model].items():
        count, h = EXAMPLES, fnv1a(f"{model}/{name}#{salt}")
        for n in shape:
            count *= n
        data = array.array(CODES[dtype], (value(splitmix64((h + i) & MASK) >> 40) for i in range(count)))
        result[name] = ([EXAMPLES, *shape], data)
    return result


def write_safetensors(path, tensors):
    """tensors: name -> (shape, array). Written beside the file first, then renamed."""
    header, offset = {}, 0
    for name, (shape, data) in tensors.items():
        size = data.itemsize * len(data)
        dtype = next(name for name, code in CODES.items() if code == data.typecode)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".part", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, data in tensors.values():
            if sys.byteorder == "big":
                data = array.array(data.typecode, data)
                data.byteswap()
            f.write(data.tobytes())
    os.replace(path + ".part", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=sorted(SHAPES))
    parser.add_argument("--data", action="store_true")
    parser.add_argument("-o", "--output", required=True)
    args = parser.parse_args()
    if args.data:
        if args.model in INPUTS:
            write_safetensors(args.output, examples(args.model))
        return
    write_safetensors(args.output, {name: (shape, values(args.model, name, shape))
                                    for name, shape in SHAPES[args.model].items()})


if __name__ == "__main__":
    main()
