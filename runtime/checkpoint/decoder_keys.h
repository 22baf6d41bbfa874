// Keys that the config.json of many decoders has in common, read and written.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "runtime/checkpoint/config_reader.h"
#include "runtime/checkpoint/rope_keys.h"

namespace ft {

using Facts = ModelFacts;

// The sizes that a Llama and its kin have, with the defaults of their config classes.
struct Sizes {
  int64_t vocab_size, hidden_size, intermediate_size, num_layers, num_heads;
  int64_t kv_heads;   // where the key is absent; 0: as many as heads. With null always as many.
  int64_t head_size;  // 0: hidden_size / num_heads, also with null
  int64_t max_positions;
};

// Sizes, and what is as wide as heads are many.
void ReadSizes(ConfigReader& c, const Sizes& sizes);

// Pre-norm blocks of attention and a gated MLP under RMSNorm. `sliding_theta`: rope's base in layers with a
// window, where the family has one for them. `padding`: the class's pad_token_id, -1 for none.
void ReadDecoder(ConfigReader& c, const Sizes& sizes, double theta, bool tied, int64_t padding = -1,
                 double sliding_theta = 0);
void WriteDecoder(const ModelFacts& facts, nlohmann::json& config);

// A Llama, of which other families have all keys.
void ReadLlama(ConfigReader& c);
void WriteLlama(const ModelFacts& facts, nlohmann::json& config);

// sliding_window counts with use_sliding_window only, then in the layers from max_window_layers on.
void ReadQwenWindow(ConfigReader& c);
void WriteQwenWindow(const ModelFacts& facts, nlohmann::json& config);

// pad_token_id as the padding_idx of PyTorch's Embedding, -1 for none; `absent` is the config class's. Needs
// vocab_size.
void ReadPadding(ConfigReader& c, int64_t absent = -1);

// One key for all four projections.
void ReadAttentionBias(ConfigReader& c);

// 0 where it is what attention does anyway; as fp32, which it is computed in.
void SetAttentionScale(ConfigReader& c, double scale, std::string_view key);
double AttentionScale(const ModelFacts& facts);

// Functions that have another name in transformers, each in the one that its family's files have.
std::string ActivationName(const std::string& activation, std::string_view of_gelu_tanh);

}  // namespace ft
