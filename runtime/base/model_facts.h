// What a model computes beyond the shapes of its tensors: what a config.json says of it and no weight shows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/types/span.h"

namespace ft {

// Written by who builds a model, carried by model.mlir ("ft.facts") and plan.bin, compared with the
// config.json that lies beside weights. The initial value of a member is the one that a model without the
// thing has; only other values are written. Rope is as transformers' ROPE_INIT_FUNCTIONS define it.
struct ModelFacts {
  std::string model_type;  // as transformers calls the family that would load the weights: "gpt2", "llama"
  int64_t vocab_size = 0;  // 0: no tokens
  int64_t hidden_size = 0;
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_size = 0;
  int64_t intermediate_size = 0;  // width of the MLP
  int64_t max_positions = 0;      // rows of a learned table; else how long sequences were in training

  std::string positions = "rope";  // "rope", "learned"
  double rope_theta = 0;           // with rope only, as all that follows of rope
  double rope_theta_sliding = 0;   // of layers with the sliding window; 0: the same
  std::string rope_type = "default";
  double rope_factor = 1;            // the context is so many times longer than that of training
  double rope_low_freq_factor = 0;   // llama3
  double rope_high_freq_factor = 0;  // llama3
  int64_t rope_original_positions = 0;
  double rope_beta_fast = 0;               // yarn
  double rope_beta_slow = 0;               // yarn
  double rope_attention_factor = 0;        // yarn, longrope; 0: the type's own formula
  std::vector<double> rope_short_factors;  // longrope: of sequences up to rope_original_positions
  std::vector<double> rope_long_factors;   // longrope: of longer ones
  double rope_fraction = 1;                // of a head's elements that are rotated
  std::vector<int64_t> layers_without_rope;

  std::string norm = "rms_norm";  // "layer_norm" has a bias; "rms_norm_plus_one" multiplies by 1 + weight
  std::string norm_placement = "pre";  // of attention and MLP: "pre", "both", "post" (of the sum), "output"
  double norm_eps = 0;
  std::string activation;  // of the MLP: "silu", "gelu" (erf), "gelu_tanh", "relu", or transformers' name
  bool gated_mlp = false;  // activation(gate) * up
  bool qkv_bias = false;
  bool attention_output_bias = false;
  bool mlp_bias = false;
  bool parallel_residual = false;  // the MLP sees what attention sees, not what it adds to
  std::string qk_norm = "none";    // norm of queries and keys: over each head, or over the whole projection
  bool tied_head = false;
  bool causal = true;          // attention sees no later position
  int64_t padding_token = -1;  // whose row of the embedding is not trained; -1: none

  int64_t sliding_window = 0;             // a position sees so many up to its own; 0: all
  std::vector<int64_t> sliding_layers;    // those with the window; empty: all
  double attention_scale = 0;             // of the scores; 0: 1 / sqrt(head_size)
  bool attention_scale_by_layer = false;  // scores are also divided by 1 + the layer's number
  double attention_softcap = 0;           // c tanh(score / c); 0: none
  double logit_softcap = 0;
  double embedding_multiplier = 1;
  double residual_multiplier = 1;  // of what is added to the residual stream
  double logit_multiplier = 1;

  int64_t num_experts = 0;  // of each layer; intermediate_size is that of each
  int64_t experts_per_token = 0;
  bool normalized_routing = false;  // the weights of a token's experts sum to 1
  double router_loss = 0;           // weight of the load-balancing loss, in training only

  int64_t num_labels = 0;   // of a classifier; 0: the head is one of language
  int64_t token_types = 0;  // rows of their table
  int64_t image_size = 0;   // pixels of a side
  int64_t patch_size = 0;
  int64_t num_channels = 0;

  double embedding_dropout = 0;  // in training only
  double residual_dropout = 0;
  double attention_dropout = 0;

  int64_t latent_bits = 0;  // of the Free Transformer

  bool operator==(const ModelFacts&) const = default;
};

using FactValue = std::variant<std::string, bool, int64_t, double, std::vector<int64_t>, std::vector<double>>;
using FactMember =
    std::variant<std::string ModelFacts::*, bool ModelFacts::*, int64_t ModelFacts::*, double ModelFacts::*,
                 std::vector<int64_t> ModelFacts::*, std::vector<double> ModelFacts::*>;

// One fact. What reads, writes, checks or compares facts walks over these.
struct FactField {
  std::string_view name;          // that of the member
  FactMember member;              // the alternatives are those of FactValue, in the same order
  bool required = false;          // every model has one: positive, or a text
  std::string_view allowed = {};  // values of a text, "a|b"; empty: any
};

absl::Span<const FactField> FactFields();          // in the order of the struct
const FactField* FindFact(std::string_view name);  // null when there is none
const FactField& FactOf(FactMember member);

FactValue GetFact(const ModelFacts& facts, const FactField& field);
// False, and nothing is changed, when the fact has another type.
bool SetFact(ModelFacts& facts, const FactField& field, const FactValue& value);

// Whether a model that lacks the thing has this value, so that it need not be written.
bool IsNeutral(const FactField& field, const FactValue& value);

// "64", "1e-05", "true", "\"silu\"", "[0, 1]"; shortened when a list or text is long.
std::string FactText(const FactValue& value);

// What is wrong with the facts of one model by themselves, in one line; empty when nothing is.
std::string CheckFacts(const ModelFacts& facts);

}  // namespace ft
