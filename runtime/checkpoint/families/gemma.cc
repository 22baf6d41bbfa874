// The config.json of Gemma, Gemma 2 and the text models of Gemma 3.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/config_families.h"
#include "runtime/checkpoint/decoder_keys.h"

namespace ft::config_families::gemma {
namespace {

using nlohmann::json;

// The norm multiplies by 1 + weight, the embedding is scaled.
void ReadGemmaBase(ConfigReader& c, const Sizes& sizes, double theta = 1e4, double sliding_theta = 0) {
  ReadDecoder(c, sizes, theta, true, /*padding=*/0, sliding_theta);
  // In the first releases of Gemma "gelu" stands for the tanh form; later ones have the function under
  // another key.
  const bool renamed = c.Text("hidden_activation").has_value();
  c.ReadActivation(renamed ? "hidden_activation" : "hidden_act", "gelu_pytorch_tanh");
  c.Ignore({"hidden_act", "hidden_activation"});
  if (c.facts().activation == "gelu" && (!renamed || c.model_type() == "gemma"))
    c.Set(&Facts::activation, std::string("gelu_tanh"), "hidden_act");
  ReadAttentionBias(c);
  c.Set(&Facts::norm, std::string("rms_norm_plus_one"));
  c.Set(&Facts::embedding_multiplier, std::sqrt(static_cast<double>(c.facts().hidden_size)));
}

// Versions differ in which of the two they read.
void WriteGemma(const ModelFacts& facts, json& config) {
  WriteDecoder(facts, config);
  config["hidden_activation"] = config["hidden_act"];
  config["attention_bias"] = facts.qkv_bias;
}

void ReadGemma(ConfigReader& c) { ReadGemmaBase(c, {256000, 3072, 24576, 28, 16, 16, 256, 8192}); }

// What is done to scores, logits and windows; `usual_window` slides in layers of which `slides` is true.
void ReadScores(ConfigReader& c, double attention_softcap, double logit_softcap, int64_t usual_window,
                absl::FunctionRef<bool(int64_t layer)> slides) {
  c.Set(&Facts::norm_placement, std::string("both"));
  SetAttentionScale(c, 1 / std::sqrt(c.Real("query_pre_attn_scalar").value_or(256)), "query_pre_attn_scalar");
  c.Read("attn_logit_softcapping", &Facts::attention_softcap, attention_softcap, 0);
  c.Read("final_logit_softcapping", &Facts::logit_softcap, logit_softcap, 0);
  const int64_t window = c.Number("sliding_window").value_or(c.IsNull("sliding_window") ? 0 : usual_window);
  ReadSlidingLayers(c, window, "sliding_window", slides);
}

void WriteScores(const ModelFacts& facts, json& config) {
  WriteGemma(facts, config);
  // A whole number for transformers.
  const double scale = AttentionScale(facts);
  const double scalar = std::clamp(std::round(1 / (scale * scale)), 1.0, 1e9);
  config["query_pre_attn_scalar"] = static_cast<int64_t>(scalar);
  const auto or_null = [](double value) { return value == 0 ? json(nullptr) : json(value); };
  config["attn_logit_softcapping"] = or_null(facts.attention_softcap);
  config["final_logit_softcapping"] = or_null(facts.logit_softcap);
  WriteSlidingLayers(facts, config);
}

void ReadGemma2(ConfigReader& c) {
  ReadGemmaBase(c, {256000, 2304, 9216, 26, 8, 4, 256, 8192});
  ReadScores(c, 50, 30, 4096, [](int64_t layer) { return layer % 2 == 0; });
}

// Where there are no layer_types, every sliding_window_pattern-th layer sees all; later versions write the
// number with a line before it.
void ReadGemma3(ConfigReader& c) {
  ReadGemmaBase(c, {262208, 2304, 9216, 26, 8, 4, 256, 131072}, 1e6, 1e4);
  c.Set(&Facts::qk_norm, std::string("head"));
  const int64_t later = c.Number("_sliding_window_pattern").value_or(6);
  const int64_t pattern = std::max<int64_t>(c.Number("sliding_window_pattern").value_or(later), 1);
  ReadScores(c, 0, 0, 4096, [&](int64_t layer) { return (layer + 1) % pattern != 0; });
  if (c.facts().sliding_window == 0) c.Set(&Facts::rope_theta_sliding, 0.0, "sliding_window");
  if (c.facts().attention_softcap != 0)
    c.Fault(
        fmt::format("attn_logit_softcapping is {}, which transformers does not apply in a Gemma 3; null is "
                    "understood",
                    c.facts().attention_softcap));
}

void WriteGemma3(const ModelFacts& facts, json& config) {
  WriteScores(facts, config);
  WriteRopeByLayer(facts, config);
}

}  // namespace

void AddFamilies(std::vector<ConfigFamily>& families) {
  families.push_back({"gemma", {"GemmaForCausalLM"}, ReadGemma, WriteGemma});
  families.push_back({"gemma2", {"Gemma2ForCausalLM"}, ReadGemma2, WriteScores});
  families.push_back({"gemma3_text", {"Gemma3ForCausalLM"}, ReadGemma3, WriteGemma3});
}

}  // namespace ft::config_families::gemma
