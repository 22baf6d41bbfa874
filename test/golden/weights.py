"""Initial weights of the debug presets, by formula: the same numbers for PyTorch and for us, with no file to store.

    weights.py MODEL -o weights.safetensors        (Python's standard library only)

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


SHAPES = {"gpt2": gpt2_shapes(),
          "llama": llama_shapes(),
          "baseline": llama_shapes(4, HIDDEN, 128, tied=True),
          "free_transformer": free_transformer_shapes()}


def base_and_half(name, shape):
    """The centre and the half width of the values of a tensor."""
    if len(shape) == 1 and name.endswith("weight"):
        return 1.0, 0.125  # norms
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
    base, half = base_and_half(name, shape)
    scale = half * 2.0 ** -23
    return array.array("f", (base - half + scale * (splitmix64((h + i) & MASK) >> 40) for i in range(count)))


def write_safetensors(path, tensors):
    """tensors: name -> (shape, array('f')). Written beside the file first, then renamed."""
    header, offset = {}, 0
    for name, (shape, data) in tensors.items():
        size = 4 * len(data)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".part", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, data in tensors.values():
            if sys.byteorder == "big":
                data = array.array("f", data)
                data.byteswap()
            f.write(data.tobytes())
    os.replace(path + ".part", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=sorted(SHAPES))
    parser.add_argument("-o", "--output", required=True)
    args = parser.parse_args()
    write_safetensors(args.output, {name: (shape, values(args.model, name, shape))
                                    for name, shape in SHAPES[args.model].items()})


if __name__ == "__main__":
    main()
