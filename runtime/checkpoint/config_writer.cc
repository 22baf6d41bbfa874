#include "runtime/checkpoint/config_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "runtime/base/printable.h"
#include "runtime/checkpoint/compare_config.h"
#include "runtime/checkpoint/config_families.h"
#include "runtime/checkpoint/config_reader.h"

namespace ft {
namespace {

using nlohmann::json;

// Functions that have another name in transformers, each in the one that its family's files have.
std::string ActivationName(const std::string& activation, std::string_view of_gelu_tanh) {
  return activation == "gelu_tanh" ? std::string(of_gelu_tanh) : activation;
}

json OrNull(double value) { return value == 0 ? json(nullptr) : json(value); }

void WriteGpt2(const ModelFacts& facts, json& config) {
  config["n_embd"] = facts.hidden_size;
  config["n_layer"] = facts.num_layers;
  config["n_head"] = facts.num_heads;
  config["n_inner"] = facts.intermediate_size;
  config["n_positions"] = facts.max_positions;
  config["layer_norm_epsilon"] = facts.norm_eps;
  config["activation_function"] = ActivationName(facts.activation, "gelu_new");
  config["scale_attn_weights"] = facts.attention_scale == 0;
  config["scale_attn_by_inverse_layer_idx"] = facts.attention_scale_by_layer;
  config["embd_pdrop"] = facts.embedding_dropout;
  config["resid_pdrop"] = facts.residual_dropout;
  config["attn_pdrop"] = facts.attention_dropout;
}

// The keys of a type that transformers computes from numbers alone; of any other (longrope has tables) there
// are none, and reading back finds that.
json RopeScaling(const ModelFacts& facts) {
  const std::string& type = facts.rope_type;
  json scaling = json::object();
  if (type != "linear" && type != "dynamic" && type != "llama3" && type != "yarn") return scaling;
  scaling["rope_type"] = type;
  scaling["factor"] = facts.rope_factor;
  if (type == "linear") return scaling;
  scaling["original_max_position_embeddings"] = facts.rope_original_positions;
  if (type == "llama3") {
    scaling["low_freq_factor"] = facts.rope_low_freq_factor;
    scaling["high_freq_factor"] = facts.rope_high_freq_factor;
  } else if (type == "yarn") {
    scaling["beta_fast"] = facts.rope_beta_fast;
    scaling["beta_slow"] = facts.rope_beta_slow;
    if (facts.rope_attention_factor != 0) scaling["attention_factor"] = facts.rope_attention_factor;
  }
  return scaling;
}

// As both versions have it. No family here rotates a part of a head only, whatever its file says.
void WriteRope(const ModelFacts& facts, json& config) {
  json scaling = RopeScaling(facts);
  config["rope_theta"] = facts.rope_theta;
  config["rope_scaling"] = scaling.empty() ? json(nullptr) : scaling;
  if (scaling.empty()) scaling["rope_type"] = "default";
  scaling["rope_theta"] = facts.rope_theta;
  config["rope_parameters"] = std::move(scaling);
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

void WriteLlama(const ModelFacts& facts, json& config) {
  WriteDecoder(facts, config);
  config["attention_bias"] = facts.qkv_bias;
  config["mlp_bias"] = facts.mlp_bias;
}

void WriteMistral(const ModelFacts& facts, json& config) {
  WriteDecoder(facts, config);
  config["sliding_window"] = facts.sliding_window > 0 ? json(facts.sliding_window) : json(nullptr);
}

bool Slides(const ModelFacts& facts, int64_t layer) {
  const std::vector<int64_t>& sliding = facts.sliding_layers;
  return facts.sliding_window > 0 &&
         (sliding.empty() || std::binary_search(sliding.begin(), sliding.end(), layer));
}

void WriteSlidingLayers(const ModelFacts& facts, json& config) {
  config["sliding_window"] = facts.sliding_window > 0 ? json(facts.sliding_window) : json(nullptr);
  json& types = config["layer_types"] = json::array();
  for (int64_t layer = 0; layer < facts.num_layers; ++layer)
    types.push_back(Slides(facts, layer) ? "sliding_attention" : "full_attention");
}

void WriteQwen2(const ModelFacts& facts, json& config) {
  WriteDecoder(facts, config);
  WriteSlidingLayers(facts, config);
  config["use_sliding_window"] = facts.sliding_window > 0;
  // What versions before layer_types read.
  int64_t first = 0;
  while (first < facts.num_layers && !Slides(facts, first)) ++first;
  config["max_window_layers"] = first;
}

void WriteQwen3(const ModelFacts& facts, json& config) {
  WriteQwen2(facts, config);
  config["attention_bias"] = facts.qkv_bias;
}

// Versions differ in which of the two they read.
void WriteGemma(const ModelFacts& facts, json& config) {
  WriteDecoder(facts, config);
  config["hidden_activation"] = config["hidden_act"];
  config["attention_bias"] = facts.qkv_bias;
}

double AttentionScale(const ModelFacts& facts) {
  return facts.attention_scale != 0 ? facts.attention_scale
                                    : 1 / std::sqrt(static_cast<double>(facts.head_size));
}

void WriteGemma2(const ModelFacts& facts, json& config) {
  WriteGemma(facts, config);
  // A whole number for transformers.
  const double scale = AttentionScale(facts);
  const double scalar = std::clamp(std::round(1 / (scale * scale)), 1.0, 1e9);
  config["query_pre_attn_scalar"] = static_cast<int64_t>(scalar);
  config["attn_logit_softcapping"] = OrNull(facts.attention_softcap);
  config["final_logit_softcapping"] = OrNull(facts.logit_softcap);
  WriteSlidingLayers(facts, config);
}

void WriteGranite(const ModelFacts& facts, json& config) {
  WriteLlama(facts, config);
  config["embedding_multiplier"] = facts.embedding_multiplier;
  config["residual_multiplier"] = facts.residual_multiplier;
  config["logits_scaling"] = 1 / facts.logit_multiplier;
  config["attention_multiplier"] = AttentionScale(facts);
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

void WriteFreeTransformer(const ModelFacts& facts, json& config) {
  WriteLlama(facts, config);
  config["latent_bits"] = facts.latent_bits;
}

struct FamilyWriter {
  std::string_view model_type;
  std::string_view architecture;  // transformers' class with a head of language; empty: it has none
  void (*write)(const ModelFacts& facts, json& config);
};

constexpr FamilyWriter kWriters[] = {
    {"gpt2", "GPT2LMHeadModel", WriteGpt2},          {"llama", "LlamaForCausalLM", WriteLlama},
    {"mistral", "MistralForCausalLM", WriteMistral}, {"qwen2", "Qwen2ForCausalLM", WriteQwen2},
    {"qwen3", "Qwen3ForCausalLM", WriteQwen3},       {"gemma", "GemmaForCausalLM", WriteGemma},
    {"gemma2", "Gemma2ForCausalLM", WriteGemma2},    {"granite", "GraniteForCausalLM", WriteGranite},
    {"smollm3", "SmolLM3ForCausalLM", WriteSmolLm3}, {"free_transformer", "", WriteFreeTransformer}};

// As torch calls it; empty for what no weights are.
std::string_view TorchName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "float32";
    case DType::kBF16:
      return "bfloat16";
    case DType::kF16:
      return "float16";
    case DType::kF64:
      return "float64";
    default:
      return "";
  }
}

// Everything must come back: a fact that the keys cannot say has now another value.
absl::Status CheckReadsBack(const json& config, const ModelFacts& facts, const ConfigFamily& family) {
  ConfigReader reader(config, facts.model_type);
  family.read(reader);
  std::vector<std::string> unsaid;
  for (const FactField& field : FactFields()) {
    const FactValue value = GetFact(facts, field);
    if (!reader.Knows(field.member) || !SameFact(GetFact(reader.facts(), field), value))
      unsaid.push_back(fmt::format("{} is {}", field.name, FactText(value)));
  }
  if (!unsaid.empty())
    return absl::InvalidArgumentError(
        fmt::format("the config.json of a {} cannot say that {}", facts.model_type, fmt::join(unsaid, ", ")));
  const std::vector<std::string> faults = reader.TakeFaults();
  return faults.empty() ? absl::OkStatus() : absl::InvalidArgumentError(faults.front());
}

}  // namespace

absl::StatusOr<std::string> ConfigJson(const ModelFacts& facts, DType dtype) {
  if (const std::string error = CheckFacts(facts); !error.empty()) return absl::InvalidArgumentError(error);
  const auto writer = std::find_if(std::begin(kWriters), std::end(kWriters), [&](const FamilyWriter& known) {
    return known.model_type == facts.model_type;
  });
  const ConfigFamily* family = FindConfigFamily(facts.model_type);
  if (writer == std::end(kWriters) || family == nullptr)
    return absl::InvalidArgumentError(
        fmt::format("the keys of the model_type {} are not known", Quote(facts.model_type)));
  if (facts.num_layers > kMaxConfigList)
    return absl::InvalidArgumentError(fmt::format("the model has {} layers, a config.json has {} at most",
                                                  facts.num_layers, kMaxConfigList));
  json config;
  config["model_type"] = facts.model_type;
  if (!writer->architecture.empty()) config["architectures"] = {writer->architecture};
  if (const std::string_view name = TorchName(dtype); !name.empty()) {
    config["dtype"] = name;
    config["torch_dtype"] = name;
  }
  config["vocab_size"] = facts.vocab_size;
  config["tie_word_embeddings"] = facts.tied_head;
  // The classes' defaults are of other vocabularies.
  for (const char* token : {"bos_token_id", "eos_token_id", "pad_token_id"}) config[token] = nullptr;
  writer->write(facts, config);
  const auto replace = json::error_handler_t::replace;
  // As a reader will see it: what is no number of JSON or no UTF-8 has become something else.
  const std::string text = config.dump(2, ' ', /*ensure_ascii=*/true, replace) + "\n";
  FT_RETURN_IF_ERROR(CheckReadsBack(json::parse(text), facts, *family));
  return text;
}

}  // namespace ft
