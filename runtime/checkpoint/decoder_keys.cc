#include "runtime/checkpoint/decoder_keys.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace ft {

using nlohmann::json;

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

void ReadDecoder(ConfigReader& c, const Sizes& sizes, double theta, bool tied, int64_t padding,
                 double sliding_theta) {
  ReadSizes(c, sizes);
  sliding_theta > 0 ? ReadRopeByLayer(c, theta, sliding_theta) : ReadRope(c, theta);
  c.Read("rms_norm_eps", &Facts::norm_eps, 1e-6);
  c.Set(&Facts::gated_mlp, true);
  c.Read("tie_word_embeddings", &Facts::tied_head, tied);
  ReadPadding(c, padding);
  c.Read("attention_dropout", &Facts::attention_dropout, 0, 0);
  // In files of ours (config_writer.h): transformers' decoders have none.
  c.Read("embedding_dropout", &Facts::embedding_dropout, 0, 0);
  c.Read("residual_dropout", &Facts::residual_dropout, 0, 0);
}

void WriteDecoder(const ModelFacts& facts, json& config) {
  config["hidden_size"] = facts.hidden_size;
  config["intermediate_size"] = facts.intermediate_size;
  config["num_hidden_layers"] = facts.num_layers;
  config["num_attention_heads"] = facts.num_heads;
  config["num_key_value_heads"] = facts.num_kv_heads;
  config["head_dim"] = facts.head_size;
  config["max_position_embeddings"] = facts.max_positions;
  WriteRope(facts, config);
  config["rms_norm_eps"] = facts.norm_eps;
  config["hidden_act"] = ActivationName(facts.activation, "gelu_pytorch_tanh");
  config["attention_dropout"] = facts.attention_dropout;
  // Keys of ours, of which transformers takes no notice: its decoders have no such dropout.
  if (facts.embedding_dropout != 0) config["embedding_dropout"] = facts.embedding_dropout;
  if (facts.residual_dropout != 0) config["residual_dropout"] = facts.residual_dropout;
}

void ReadPadding(ConfigReader& c, int64_t absent) {
  int64_t token = c.Number("pad_token_id").value_or(c.Has("pad_token_id") ? -1 : absent);
  const bool none = token == -1 && (c.IsNull("pad_token_id") || !c.Has("pad_token_id"));
  // PyTorch counts from the end.
  if (token < 0 && !none) token += c.facts().vocab_size;
  if (!none && (token < 0 || token >= c.facts().vocab_size)) {
    c.Fault(fmt::format("pad_token_id is {}, which is no token of {}", token, c.facts().vocab_size));
    token = -1;
  }
  c.Set(&Facts::padding_token, token, "pad_token_id");
}

void ReadAttentionBias(ConfigReader& c) {
  c.Read("attention_bias", &Facts::qkv_bias, false);
  c.Read("attention_bias", &Facts::attention_output_bias, false);
}

void ReadLlama(ConfigReader& c) {
  ReadDecoder(c, {32000, 4096, 11008, 32, 32, 0, 0, 2048}, 1e4, false);
  c.ReadActivation("hidden_act", "silu");
  ReadAttentionBias(c);
  c.Read("mlp_bias", &Facts::mlp_bias, false);
}

void WriteLlama(const ModelFacts& facts, json& config) {
  WriteDecoder(facts, config);
  config["attention_bias"] = facts.qkv_bias;
  config["mlp_bias"] = facts.mlp_bias;
}

void ReadQwenWindow(ConfigReader& c) {
  const bool used = c.Flag("use_sliding_window").value_or(false);
  const int64_t window = c.Number("sliding_window").value_or(c.IsNull("sliding_window") ? 0 : 4096);
  const int64_t first = c.Number("max_window_layers").value_or(28);
  ReadSlidingLayers(c, used ? window : 0, "sliding_window", [&](int64_t layer) { return layer >= first; });
}

void WriteQwenWindow(const ModelFacts& facts, json& config) {
  WriteSlidingLayers(facts, config);
  config["use_sliding_window"] = facts.sliding_window > 0;
  // What versions before layer_types read.
  int64_t first = 0;
  while (first < facts.num_layers && !Slides(facts, first)) ++first;
  config["max_window_layers"] = first;
}

void SetAttentionScale(ConfigReader& c, double scale, std::string_view key) {
  const double usual = 1 / std::sqrt(static_cast<double>(c.facts().head_size));
  c.Set(&Facts::attention_scale, static_cast<float>(scale) == static_cast<float>(usual) ? 0 : scale, key);
}

double AttentionScale(const ModelFacts& facts) {
  return facts.attention_scale != 0 ? facts.attention_scale
                                    : 1 / std::sqrt(static_cast<double>(facts.head_size));
}

std::string ActivationName(const std::string& activation, std::string_view of_gelu_tanh) {
  return activation == "gelu_tanh" ? std::string(of_gelu_tanh) : activation;
}

}  // namespace ft
