// The config.json of Llama and of decoders that are almost one.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/config_families.h"
#include "runtime/checkpoint/decoder_keys.h"

namespace ft::config_families::llama {
namespace {

using nlohmann::json;

void ReadMistral(ConfigReader& c) {
  ReadDecoder(c, {32000, 4096, 14336, 32, 32, 8, 0, 4096 * 32}, 1e4, false);
  c.ReadActivation("hidden_act", "silu");
  c.Read("sliding_window", &Facts::sliding_window, 4096, 0);
}

void WriteMistral(const ModelFacts& facts, json& config) {
  WriteDecoder(facts, config);
  config["sliding_window"] = facts.sliding_window > 0 ? json(facts.sliding_window) : json(nullptr);
}

void ReadQwen2(ConfigReader& c) {
  ReadDecoder(c, {151936, 4096, 22016, 32, 32, 32, 0, 32768}, 1e4, false);
  c.ReadActivation("hidden_act", "silu");
  c.Set(&Facts::qkv_bias, true);
  ReadQwenWindow(c);
}

void WriteQwen2(const ModelFacts& facts, json& config) {
  WriteDecoder(facts, config);
  WriteQwenWindow(facts, config);
}

void ReadQwen3(ConfigReader& c) {
  ReadDecoder(c, {151936, 4096, 22016, 32, 32, 32, 128, 32768}, 1e4, false);
  c.ReadActivation("hidden_act", "silu");
  ReadAttentionBias(c);
  c.Set(&Facts::qk_norm, std::string("head"));
  ReadQwenWindow(c);
}

void WriteQwen3(const ModelFacts& facts, json& config) {
  WriteQwen2(facts, config);
  config["attention_bias"] = facts.qkv_bias;
}

void ReadGranite(ConfigReader& c) {
  ReadLlama(c);
  c.Read("embedding_multiplier", &Facts::embedding_multiplier, 1);
  c.Read("residual_multiplier", &Facts::residual_multiplier, 1);
  c.Set(&Facts::logit_multiplier, 1 / c.Real("logits_scaling").value_or(1), "logits_scaling");
  SetAttentionScale(c, c.Real("attention_multiplier").value_or(1), "attention_multiplier");
}

void WriteGranite(const ModelFacts& facts, json& config) {
  WriteLlama(facts, config);
  config["embedding_multiplier"] = facts.embedding_multiplier;
  config["residual_multiplier"] = facts.residual_multiplier;
  config["logits_scaling"] = 1 / facts.logit_multiplier;
  config["attention_multiplier"] = AttentionScale(facts);
}

// Every fourth layer has no positions; these are the ones with a window, if there is one.
void ReadSmolLm3(ConfigReader& c) {
  ReadDecoder(c, {128256, 2048, 11008, 36, 16, 4, 0, 32768}, 2e6, true, /*padding=*/128004);
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

void WriteSmolLm3(const ModelFacts& facts, json& config) {
  WriteLlama(facts, config);
  WriteSlidingLayers(facts, config);
  config["use_sliding_window"] = facts.sliding_window > 0;
  json& rope = config["no_rope_layers"] = json::array();  // 1 where there is rope, in spite of the name
  const std::vector<int64_t>& without = facts.layers_without_rope;
  for (int64_t layer = 0; layer < facts.num_layers; ++layer)
    rope.push_back(std::binary_search(without.begin(), without.end(), layer) ? 0 : 1);
}

// Norms of what is added, and of whole projections.
void ReadOlmo2(ConfigReader& c) {
  ReadDecoder(c, {50304, 4096, 11008, 32, 32, 0, 0, 2048}, 1e4, false, /*padding=*/1);
  if (!c.Has("rms_norm_eps")) c.Set(&Facts::norm_eps, 1e-5, "rms_norm_eps");
  c.ReadActivation("hidden_act", "silu");
  ReadAttentionBias(c);
  c.Set(&Facts::norm_placement, std::string("output"));
  c.Set(&Facts::qk_norm, std::string("projection"));
}

void WriteOlmo2(const ModelFacts& facts, json& config) {
  WriteDecoder(facts, config);
  config["attention_bias"] = facts.qkv_bias;
}

void ReadPhi3(ConfigReader& c) {
  ReadDecoder(c, {32064, 3072, 8192, 32, 32, 0, 0, 4096}, 1e4, false, /*padding=*/32000);
  if (!c.Has("rms_norm_eps")) c.Set(&Facts::norm_eps, 1e-5, "rms_norm_eps");
  c.ReadActivation("hidden_act", "silu");
  // Code that lay beside the first models of the type and is transformers' own since.
  c.Ignore({"auto_map"});
  c.Read("embd_pdrop", &Facts::embedding_dropout, 0);
  c.Read("resid_pdrop", &Facts::residual_dropout, 0);
  c.Read("sliding_window", &Facts::sliding_window, 0, 0);
}

void WritePhi3(const ModelFacts& facts, json& config) {
  WriteMistral(facts, config);
  WriteRopeOfPart(facts, config);
  config["embd_pdrop"] = facts.embedding_dropout;
  config["resid_pdrop"] = facts.residual_dropout;
  config.erase("embedding_dropout");
  config.erase("residual_dropout");
  // Goes before what rope's own object says; without scaling it is the class's own number, which means
  // nothing.
  const bool scaled = facts.rope_original_positions > 0;
  config["original_max_position_embeddings"] = scaled ? facts.rope_original_positions : 4096;
  // Transformers 4 wants these keys and no others, which is possible where they say all.
  if (facts.rope_type == "longrope" && HasRatioOfContexts(facts) && facts.rope_attention_factor == 0)
    config["rope_scaling"] = {{"type", facts.rope_type},
                              {"short_factor", facts.rope_short_factors},
                              {"long_factor", facts.rope_long_factors}};
}

}  // namespace

void AddFamilies(std::vector<ConfigFamily>& families) {
  families.push_back({"llama", {"LlamaForCausalLM"}, ReadLlama, WriteLlama});
  families.push_back({"mistral", {"MistralForCausalLM"}, ReadMistral, WriteMistral});
  families.push_back({"qwen2", {"Qwen2ForCausalLM"}, ReadQwen2, WriteQwen2});
  families.push_back({"qwen3", {"Qwen3ForCausalLM"}, ReadQwen3, WriteQwen3});
  families.push_back({"granite", {"GraniteForCausalLM"}, ReadGranite, WriteGranite});
  families.push_back({"olmo2", {"Olmo2ForCausalLM"}, ReadOlmo2, WriteOlmo2});
  families.push_back({"phi3", {"Phi3ForCausalLM"}, ReadPhi3, WritePhi3});
  families.push_back({"smollm3", {"SmolLM3ForCausalLM"}, ReadSmolLm3, WriteSmolLm3});
}

}  // namespace ft::config_families::llama
