"""Writes the config.json files beside it, as transformers writes them: v4/NAME.json or v5/NAME.json, by the version that runs this.

Run by hand, in the environment that scripts/venv makes for version 5, and with an installation of version 4 before it:

    build/venv/bin/python test/hf_configs/make_configs.py
    PYTHONPATH=FOLDER_OF_VERSION_4 build/venv/bin/python test/hf_configs/make_configs.py

--check writes nothing and fails where what is there differs beyond the name of the version.
"""
import argparse
import json
import pathlib
import sys
import tempfile

import transformers

HERE = pathlib.Path(__file__).parent
MAJOR = int(transformers.__version__.split(".")[0])

GPT2 = dict(vocab_size=256, n_positions=64, n_embd=64, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0)
LLAMA = dict(vocab_size=256, max_position_embeddings=64, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, intermediate_size=176, bos_token_id=0, eos_token_id=0)


ENCODER = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256, hidden_dropout_prob=0.0,
               attention_probs_dropout_prob=0.0)
# The classes whose models say what save_pretrained writes of them; all others are causal.
HEADS = {"vit": "ViTForImageClassification", "bert": "BertForMaskedLM", "bert_classifier": "BertForSequenceClassification",
         "roberta": "RobertaForMaskedLM", "roberta_classifier": "RobertaForSequenceClassification"}


def rope(theta=10000.0, **scaling):
    """Rope as the version's config classes take it."""
    if MAJOR >= 5:
        return {"rope_parameters": {"rope_type": "default", "rope_theta": theta, **scaling}}
    return {"rope_theta": theta} | ({"rope_scaling": scaling} if scaling else {})


def longrope(**factors):
    """Version 4 wants these keys and no others."""
    return rope(rope_type="longrope", **factors) if MAJOR >= 5 else {"rope_scaling": {"type": "longrope", **factors}}


def sliding_rope(theta, sliding):
    """Of layers that see all, and of those with a window."""
    if MAJOR >= 5:
        return {"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": theta},
                                    "sliding_attention": {"rope_type": "default", "rope_theta": sliding}}}
    return {"rope_theta": theta, "rope_local_base_freq": sliding}


# Name -> (model_type, what differs from the defaults of its class)
CONFIGS = {
    "gpt2": ("gpt2", GPT2),
    "gpt2_inner": ("gpt2", GPT2 | dict(n_inner=100, activation_function="gelu_pytorch_tanh")),
    "gpt2_other": ("gpt2", GPT2 | dict(activation_function="gelu", layer_norm_epsilon=1e-6, tie_word_embeddings=False,
                                       scale_attn_weights=False, scale_attn_by_inverse_layer_idx=True)),
    "llama": ("llama", LLAMA | dict(rms_norm_eps=1e-5)),
    "llama_tied": ("llama", LLAMA | dict(rms_norm_eps=1e-5, tie_word_embeddings=True, dtype="bfloat16")),
    "llama_theta": ("llama", LLAMA | dict(rms_norm_eps=1e-5) | rope(500000.0)),
    "llama_biases": ("llama", LLAMA | dict(rms_norm_eps=1e-5, attention_bias=True, mlp_bias=True)),
    "llama_head_size": ("llama", LLAMA | dict(rms_norm_eps=1e-5, head_dim=32)),
    "llama_defaults": ("llama", dict()),
    "llama3_scaled": ("llama", LLAMA | dict(rms_norm_eps=1e-5) | rope(
        500000.0, rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=32)),
    "llama_linear": ("llama", LLAMA | dict(rms_norm_eps=1e-5) | rope(rope_type="linear", factor=4.0)),
    "llama_yarn": ("llama", LLAMA | dict(rms_norm_eps=1e-5) | rope(
        rope_type="yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=32.0, beta_slow=1.0)),
    "mistral": ("mistral", LLAMA | dict(rms_norm_eps=1e-5)),
    "mistral_window": ("mistral", LLAMA | dict(rms_norm_eps=1e-5, sliding_window=16)),
    "mistral_no_window": ("mistral", LLAMA | dict(rms_norm_eps=1e-5, sliding_window=None)),
    "qwen2": ("qwen2", LLAMA | dict(tie_word_embeddings=True) | rope(1000000.0)),
    "qwen2_untied": ("qwen2", LLAMA | rope(1000000.0)),
    "qwen2_window": ("qwen2", LLAMA | dict(tie_word_embeddings=True, use_sliding_window=True, sliding_window=16,
                                           max_window_layers=1) | rope(1000000.0)),
    "qwen3": ("qwen3", LLAMA | dict(head_dim=16, tie_word_embeddings=True) | rope(1000000.0)),
    "gemma": ("gemma", LLAMA | dict(head_dim=16, rms_norm_eps=1e-5)),
    "gemma2": ("gemma2", LLAMA | dict(head_dim=16, sliding_window=16)),
    "granite": ("granite", LLAMA | dict(embedding_multiplier=12.0, residual_multiplier=0.22, logits_scaling=8.0,
                                        attention_multiplier=0.015625, rms_norm_eps=1e-5)),
    "smollm3": ("smollm3", LLAMA | dict(num_hidden_layers=4, rms_norm_eps=1e-5, tie_word_embeddings=True, pad_token_id=0)),
    "olmo2": ("olmo2", LLAMA | dict(pad_token_id=0)),
    # The debug presets of families of ours, as their transformers' classes say them.
    "gemma3": ("gemma3_text", LLAMA | dict(num_hidden_layers=3, num_key_value_heads=1, head_dim=32, query_pre_attn_scalar=24,
                                           sliding_window=16, layer_types=["sliding_attention"] * 2 + ["full_attention"])
               | sliding_rope(1000000.0, 10000.0)),
    "mixtral": ("mixtral", LLAMA | dict(intermediate_size=96, num_local_experts=4, num_experts_per_tok=2, router_aux_loss_coef=0.02,
                                        output_router_logits=True) | rope(1000000.0)),
    "qwen3_moe": ("qwen3_moe", LLAMA | dict(intermediate_size=96, moe_intermediate_size=96, head_dim=32, num_experts=6,
                                            num_experts_per_tok=3, output_router_logits=True) | rope(1000000.0)),
    "vit": ("vit", ENCODER | dict(image_size=32, patch_size=8, num_labels=10)),
    "bert": ("bert", ENCODER | dict(vocab_size=256, max_position_embeddings=64, pad_token_id=0)),
    "bert_classifier": ("bert", ENCODER | dict(vocab_size=256, max_position_embeddings=64, pad_token_id=0, num_labels=3)),
    "phi3_longrope": ("phi3", LLAMA | dict(pad_token_id=0, rms_norm_eps=1e-5, original_max_position_embeddings=32) | longrope(
        short_factor=[1.0] * 8, long_factor=[2.0] * 8)),
    "gpt_neox": ("gpt_neox", {key: value for key, value in LLAMA.items() if key != "num_key_value_heads"} | dict(intermediate_size=256)),
    "roberta": ("roberta", ENCODER | dict(vocab_size=256, max_position_embeddings=66)),
    "roberta_classifier": ("roberta", ENCODER | dict(vocab_size=256, max_position_embeddings=66, num_labels=3)),
    "phi3": ("phi3", LLAMA | dict(pad_token_id=0, rms_norm_eps=1e-5)),
}


def write(name):
    model_type, options = CONFIGS[name]
    if MAJOR < 5 and "dtype" in options:
        options = {k: v for k, v in options.items() if k != "dtype"} | {"torch_dtype": options["dtype"]}
    config = transformers.AutoConfig.for_model(model_type, **options)
    # What save_pretrained of a model adds.
    config.architectures = [HEADS.get(name) or transformers.AutoModelForCausalLM._model_mapping[type(config)].__name__]
    with tempfile.TemporaryDirectory() as folder:
        config.save_pretrained(folder)
        return (pathlib.Path(folder) / "config.json").read_text()


def same(a, b):
    a, b = json.loads(a), json.loads(b)
    a.pop("transformers_version", None), b.pop("transformers_version", None)
    return a == b


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    folder = HERE / f"v{MAJOR}"
    folder.mkdir(exist_ok=True)
    differing = []
    for name in CONFIGS:
        path, text = folder / f"{name}.json", write(name)
        if not check:
            path.write_text(text)
        elif not path.exists() or not same(path.read_text(), text):
            differing.append(path.name)
    if differing:
        sys.exit(f"{folder}: {', '.join(differing)}: not what transformers {transformers.__version__} writes")


if __name__ == "__main__":
    main()
