#include "runtime/checkpoint/config_families.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "runtime/checkpoint/rope_keys.h"

namespace ft {
namespace {

using Facts = ModelFacts;

// The sizes that a Llama and its kin have, with the defaults of their config classes.
struct Sizes {
  int64_t vocab_size, hidden_size, intermediate_size, num_layers, num_heads;
  int64_t kv_heads;   // where the key is absent; 0: as many as heads. With null always as many.
  int64_t head_size;  // 0: hidden_size / num_heads, also with null
  int64_t max_positions;
};

void ReadSizes(ConfigReader& c, const Sizes& sizes) {
  c.Read("vocab_size", &Facts::vocab_size, sizes.vocab_size);
  c.Read("hidden_size", &Facts::hidden_size, sizes.hidden_size);
  c.Read("intermediate_size", &Facts::intermediate_size, sizes.intermediate_size);
  c.Read("num_hidden_layers", &Facts::num_layers, sizes.num_layers);
  c.Read("num_attention_heads", &Facts::num_heads, sizes.num_heads);
  const int64_t heads = c.facts().num_heads;
  c.Read("num_key_value_heads", &Facts::num_kv_heads, sizes.kv_heads > 0 ? sizes.kv_heads : heads, heads);
  const int64_t equal_part = c.Knows(&Facts::num_heads) ? c.facts().hidden_size / heads : 0;
  c.Read("head_dim", &Facts::head_size, sizes.head_size > 0 ? sizes.head_size : equal_part, equal_part);
  if (!c.Has("head_dim") && sizes.head_size == 0 &&
      !(c.Knows(&Facts::num_heads) && c.Knows(&Facts::hidden_size)))
    c.SetUnknown(&Facts::head_size);
  if (!c.Has("num_key_value_heads") && sizes.kv_heads == 0 && !c.Knows(&Facts::num_heads))
    c.SetUnknown(&Facts::num_kv_heads);
  c.Read("max_position_embeddings", &Facts::max_positions, sizes.max_positions);
}

// Pre-norm blocks of attention and a gated MLP under RMSNorm.
void ReadDecoder(ConfigReader& c, const Sizes& sizes, double theta, bool tied) {
  ReadSizes(c, sizes);
  ReadRope(c, theta);
  c.Read("rms_norm_eps", &Facts::norm_eps, 1e-6);
  c.Set(&Facts::gated_mlp, true);
  c.Read("tie_word_embeddings", &Facts::tied_head, tied);
  c.Read("attention_dropout", &Facts::attention_dropout, 0, 0);
  // In files of ours (config_writer.h): transformers' decoders have none.
  c.Read("embedding_dropout", &Facts::embedding_dropout, 0, 0);
  c.Read("residual_dropout", &Facts::residual_dropout, 0, 0);
}

// One key for all four projections.
void ReadAttentionBias(ConfigReader& c) {
  c.Read("attention_bias", &Facts::qkv_bias, false);
  c.Read("attention_bias", &Facts::attention_output_bias, false);
}

// 0 where it is what attention does anyway; as fp32, which it is computed in.
void SetAttentionScale(ConfigReader& c, double scale, std::string_view key) {
  const double usual = 1 / std::sqrt(static_cast<double>(c.facts().head_size));
  c.Set(&Facts::attention_scale, static_cast<float>(scale) == static_cast<float>(usual) ? 0 : scale, key);
}

void ReadGpt2(ConfigReader& c) {
  c.Read("vocab_size", &Facts::vocab_size, 50257);
  c.Read("n_embd", &Facts::hidden_size, 768);
  c.Read("n_layer", &Facts::num_layers, 12);
  c.Read("n_head", &Facts::num_heads, 12);
  c.Set(&Facts::num_kv_heads, c.facts().num_heads, "n_head");
  if (c.Knows(&Facts::num_heads) && c.Knows(&Facts::hidden_size)) {
    c.Set(&Facts::head_size, c.facts().hidden_size / c.facts().num_heads, "n_head");
  } else {
    c.SetUnknown(&Facts::head_size);
    c.SetUnknown(&Facts::num_kv_heads);
  }
  const int64_t inner = 4 * c.facts().hidden_size;
  c.Read("n_inner", &Facts::intermediate_size, inner, inner);
  c.Read("n_positions", &Facts::max_positions, 1024);
  c.Set(&Facts::positions, std::string("learned"));
  c.Set(&Facts::norm, std::string("layer_norm"));
  c.Read("layer_norm_epsilon", &Facts::norm_eps, 1e-5);
  c.ReadActivation("activation_function", "gelu_new");
  c.Set(&Facts::qkv_bias, true);
  c.Set(&Facts::attention_output_bias, true);
  c.Set(&Facts::mlp_bias, true);
  c.Read("tie_word_embeddings", &Facts::tied_head, true);
  if (!c.Flag("scale_attn_weights").value_or(true)) SetAttentionScale(c, 1, "scale_attn_weights");
  c.Read("scale_attn_by_inverse_layer_idx", &Facts::attention_scale_by_layer, false);
  c.Read("embd_pdrop", &Facts::embedding_dropout, 0.1);
  c.Read("resid_pdrop", &Facts::residual_dropout, 0.1);
  c.Read("attn_pdrop", &Facts::attention_dropout, 0.1);
  // An order of operations, an old name of n_positions, and another head than that of a language model.
  c.Ignore({"reorder_and_upcast_attn", "n_ctx", "summary_type", "summary_use_proj", "summary_activation",
            "summary_proj_to_labels", "summary_first_dropout"});
}

void ReadLlama(ConfigReader& c) {
  ReadDecoder(c, {32000, 4096, 11008, 32, 32, 0, 0, 2048}, 1e4, false);
  c.ReadActivation("hidden_act", "silu");
  ReadAttentionBias(c);
  c.Read("mlp_bias", &Facts::mlp_bias, false);
}

void ReadMistral(ConfigReader& c) {
  ReadDecoder(c, {32000, 4096, 14336, 32, 32, 8, 0, 4096 * 32}, 1e4, false);
  c.ReadActivation("hidden_act", "silu");
  c.Read("sliding_window", &Facts::sliding_window, 4096, 0);
}

// sliding_window counts with use_sliding_window only, then in the layers from max_window_layers on.
void ReadQwenWindow(ConfigReader& c) {
  const bool used = c.Flag("use_sliding_window").value_or(false);
  const int64_t window = c.Number("sliding_window").value_or(c.IsNull("sliding_window") ? 0 : 4096);
  const int64_t first = c.Number("max_window_layers").value_or(28);
  ReadSlidingLayers(c, used ? window : 0, "sliding_window", [&](int64_t layer) { return layer >= first; });
}

void ReadQwen2(ConfigReader& c) {
  ReadDecoder(c, {151936, 4096, 22016, 32, 32, 32, 0, 32768}, 1e4, false);
  c.ReadActivation("hidden_act", "silu");
  c.Set(&Facts::qkv_bias, true);
  ReadQwenWindow(c);
}

void ReadQwen3(ConfigReader& c) {
  ReadDecoder(c, {151936, 4096, 22016, 32, 32, 32, 128, 32768}, 1e4, false);
  c.ReadActivation("hidden_act", "silu");
  ReadAttentionBias(c);
  c.Set(&Facts::qk_norm, std::string("head"));
  ReadQwenWindow(c);
}

// Gemma and Gemma 2: the norm multiplies by 1 + weight, the embedding is scaled.
void ReadGemmaBase(ConfigReader& c, const Sizes& sizes) {
  ReadDecoder(c, sizes, 1e4, true);
  // In the first releases "gelu" stands for the tanh form.
  const bool renamed = c.Text("hidden_activation").has_value();
  c.ReadActivation(renamed ? "hidden_activation" : "hidden_act", "gelu_pytorch_tanh");
  c.Ignore({"hidden_act", "hidden_activation"});
  if (c.facts().activation == "gelu") c.Set(&Facts::activation, std::string("gelu_tanh"), "hidden_act");
  ReadAttentionBias(c);
  c.Set(&Facts::norm, std::string("rms_norm_plus_one"));
  c.Set(&Facts::embedding_multiplier, std::sqrt(static_cast<double>(c.facts().hidden_size)));
}

void ReadGemma(ConfigReader& c) { ReadGemmaBase(c, {256000, 3072, 24576, 28, 16, 16, 256, 8192}); }

void ReadGemma2(ConfigReader& c) {
  ReadGemmaBase(c, {256000, 2304, 9216, 26, 8, 4, 256, 8192});
  c.Set(&Facts::norm_placement, std::string("both"));
  SetAttentionScale(c, 1 / std::sqrt(c.Real("query_pre_attn_scalar").value_or(256)), "query_pre_attn_scalar");
  c.Read("attn_logit_softcapping", &Facts::attention_softcap, 50, 0);
  c.Read("final_logit_softcapping", &Facts::logit_softcap, 30, 0);
  const int64_t window = c.Number("sliding_window").value_or(c.IsNull("sliding_window") ? 0 : 4096);
  ReadSlidingLayers(c, window, "sliding_window", [](int64_t layer) { return layer % 2 == 0; });
}

void ReadGranite(ConfigReader& c) {
  ReadLlama(c);
  c.Read("embedding_multiplier", &Facts::embedding_multiplier, 1);
  c.Read("residual_multiplier", &Facts::residual_multiplier, 1);
  c.Set(&Facts::logit_multiplier, 1 / c.Real("logits_scaling").value_or(1), "logits_scaling");
  SetAttentionScale(c, c.Real("attention_multiplier").value_or(1), "attention_multiplier");
}

// Every fourth layer has no positions; these are the ones with a window, if there is one.
void ReadSmolLm3(ConfigReader& c) {
  ReadDecoder(c, {128256, 2048, 11008, 36, 16, 4, 0, 32768}, 2e6, true);
  c.ReadActivation("hidden_act", "silu");
  ReadAttentionBias(c);
  c.Read("mlp_bias", &Facts::mlp_bias, false);
  const int64_t every = c.Number("no_rope_layer_interval").value_or(4);
  const auto has_rope = c.Numbers("no_rope_layers");  // 1 where there is rope, in spite of the name
  std::vector<int64_t> without;
  for (int64_t i = 0; i < std::min(c.facts().num_layers, kMaxConfigList); ++i) {
    const bool rope = has_rope.has_value()
                          ? i >= static_cast<int64_t>(has_rope->size()) || (*has_rope)[i] != 0
                          : every <= 0 || (i + 1) % every != 0;
    if (!rope) without.push_back(i);
  }
  const int64_t window = c.Number("sliding_window").value_or(0);
  ReadSlidingLayers(c, c.Flag("use_sliding_window").value_or(false) ? window : 0, "sliding_window",
                    [&](int64_t layer) { return std::binary_search(without.begin(), without.end(), layer); });
  c.Set(&Facts::layers_without_rope, std::move(without), "no_rope_layers");
}

// Not of transformers: the file is one of ours.
void ReadFreeTransformer(ConfigReader& c) {
  ReadLlama(c);
  c.Read("latent_bits", &Facts::latent_bits, 0);
}

constexpr ConfigFamily kFamilies[] = {{"gpt2", ReadGpt2},       {"llama", ReadLlama},
                                      {"mistral", ReadMistral}, {"qwen2", ReadQwen2},
                                      {"qwen3", ReadQwen3},     {"gemma", ReadGemma},
                                      {"gemma2", ReadGemma2},   {"granite", ReadGranite},
                                      {"smollm3", ReadSmolLm3}, {"free_transformer", ReadFreeTransformer}};

}  // namespace

absl::Span<const ConfigFamily> ConfigFamilies() { return kFamilies; }

const ConfigFamily* FindConfigFamily(std::string_view model_type) {
  for (const ConfigFamily& family : kFamilies) {
    if (family.model_type == model_type) return &family;
  }
  return nullptr;
}

}  // namespace ft
