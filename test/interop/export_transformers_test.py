"""Modules of transformers through ft.export: loss and every gradient are PyTorch's."""
import unittest

import torch
import transformers as tf
from torch import nn

from exporting import B, T, V, ExportTest, ids

tf.logging.set_verbosity_error()
SIZES = dict(vocab_size=V, hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64)
SHARED = dict(num_key_value_heads=2)
HEADS = dict(num_key_value_heads=2, head_dim=20)
GPT2 = dict(vocab_size=V, n_embd=48, n_layer=2, n_head=4, n_positions=40, bos_token_id=0, eos_token_id=0)
MOE = dict(num_experts_per_tok=2, output_router_logits=True)
VIT = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=32, intermediate_size=80, patch_size=8, num_labels=10)


class WithLoss(nn.Module):
    """A model of transformers and its own loss, of `labels`, which it shifts."""

    def __init__(self, model):
        super().__init__()
        self.model = model.train()

    def forward(self, input_ids, labels):
        return self.model(input_ids=input_ids, labels=labels, use_cache=False)


class Encoder(WithLoss):
    def forward(self, input_ids, attention_mask, labels):
        return self.model(input_ids=input_ids, attention_mask=attention_mask, labels=labels)


class Pictures(WithLoss):
    def forward(self, pixel_values, labels):
        return self.model(pixel_values=pixel_values, labels=labels).loss


def without_dropout(config):
    for name in vars(config):
        if "dropout" in name or name.endswith("pdrop"):
            setattr(config, name, 0.0 if getattr(config, name) is not None else None)
    return config


def causal(config, attention="sdpa"):
    return lambda: (WithLoss(tf.AutoModelForCausalLM.from_config(without_dropout(config), attn_implementation=attention)), (ids(), labels()))


def labels(length=T):
    """Some of which count for nothing."""
    found = ids(length)
    found[0, :3] = -100
    return found


def padded():
    mask = torch.ones(B, T, dtype=torch.long)
    mask[0, T - 5:] = 0
    return mask


def encoder(model, config, targets):
    return lambda: (Encoder(model(without_dropout(config))), (ids(), padded(), targets()))


CAUSAL = {
    "GPT-2": causal(tf.GPT2Config(**GPT2)),
    "GPT-2, eager attention": causal(tf.GPT2Config(**GPT2), "eager"),
    "Llama": causal(tf.LlamaConfig(**SIZES, **SHARED)),
    "Llama, rope of 3.1": causal(tf.LlamaConfig(**SIZES, **SHARED, rope_parameters=dict(
        rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32))),
    "Mistral, window": causal(tf.MistralConfig(**SIZES, **SHARED, sliding_window=5)),
    "Qwen2": causal(tf.Qwen2Config(**SIZES, **SHARED)),
    "Qwen3": causal(tf.Qwen3Config(**SIZES, **HEADS)),
    "Gemma 2": causal(tf.Gemma2Config(**SIZES, **HEADS, sliding_window=5), "eager"),
    "Gemma 3": causal(tf.Gemma3TextConfig(**SIZES, **HEADS, sliding_window=5)),
    "Phi-3": causal(tf.Phi3Config(**SIZES, **SHARED, pad_token_id=0)),
    "OLMo 2": causal(tf.Olmo2Config(**SIZES, **SHARED)),
    "SmolLM3": causal(tf.SmolLM3Config(**SIZES, **SHARED, pad_token_id=0)),
    "GPT-NeoX": causal(tf.GPTNeoXConfig(**SIZES)),
    "Mixtral": causal(tf.MixtralConfig(**SIZES, **SHARED, **MOE, num_local_experts=4)),
    "Qwen3-MoE": causal(tf.Qwen3MoeConfig(**SIZES, **HEADS, **MOE, num_experts=4, moe_intermediate_size=24)),
}
ENCODERS = {
    "BERT, masked words": encoder(tf.BertForMaskedLM, tf.BertConfig(**SIZES), labels),
    "BERT, classifier": encoder(tf.BertForSequenceClassification, tf.BertConfig(**SIZES, num_labels=3), lambda: torch.randint(0, 3, (B,))),
    "RoBERTa": encoder(tf.RobertaForMaskedLM, tf.RobertaConfig(**SIZES, pad_token_id=1), labels),
    "ViT": lambda: (Pictures(tf.ViTForImageClassification(without_dropout(tf.ViTConfig(**VIT)))), (torch.randn(B, 3, 32, 32), torch.randint(0, 10, (B,)))),
}
OTHERS = {
    "T5": lambda: (WithLoss(tf.T5ForConditionalGeneration(tf.T5Config(vocab_size=V, d_model=48, d_kv=12, d_ff=80, num_layers=2, num_heads=4, dropout_rate=0.0,
                                                                      decoder_start_token_id=0))), (ids(), labels(11))),
    "OPT": causal(tf.OPTConfig(vocab_size=V, hidden_size=48, ffn_dim=80, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64,
                               word_embed_proj_dim=48, dropout=0.0)),
    "Falcon": causal(tf.FalconConfig(vocab_size=V, hidden_size=48, num_hidden_layers=2, num_attention_heads=4)),
    "Falcon, ALiBi": causal(tf.FalconConfig(vocab_size=V, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, alibi=True)),
    "BLOOM": causal(tf.BloomConfig(vocab_size=V, hidden_size=48, n_layer=2, n_head=4), "eager"),
    "MPT": causal(tf.MptConfig(vocab_size=V, d_model=48, n_layers=2, n_heads=4, max_seq_len=64), "eager"),
    "Phi": causal(tf.PhiConfig(**SIZES)),
    "StarCoder2": causal(tf.Starcoder2Config(**SIZES, **SHARED, sliding_window=5)),
    "DeepSeek-V3": causal(tf.DeepseekV3Config(**SIZES, num_key_value_heads=4, moe_intermediate_size=24, n_routed_experts=8, n_shared_experts=1, num_experts_per_tok=2,
                                              n_group=2, topk_group=1, q_lora_rank=20, kv_lora_rank=12, qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=12,
                                              first_k_dense_replace=1)),
    "gpt-oss": causal(tf.GptOssConfig(vocab_size=V, hidden_size=48, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=12,
                                      num_local_experts=4, num_experts_per_tok=2, sliding_window=5, max_position_embeddings=64), "eager"),
}


class Transformers(ExportTest):
    def test_decoders(self):
        self.check_all(CAUSAL)

    def test_encoders(self):
        self.check_all(ENCODERS)

    def test_other_families(self):
        self.check_all(OTHERS)

    def test_what_is_known_whole_stays_whole(self):
        for name, wanted in (("Llama", ["causal", "kv_heads 2", "ft.rms_norm"]), ("Mistral, window", ["causal window 5"]), ("GPT-2", ["ft.layer_norm", "bias", "ft.gelu"])):
            module, example = CAUSAL[name]()
            folder, made = self.exported(module, example)
            for words in wanted:
                self.assertIn(words, made.text, name)
            self.assertEqual(made.text.count("ft.attention"), 2)
            self.assertNotIn("ft.softmax", made.text)


if __name__ == "__main__":
    unittest.main()
