// The config.json of GPT-2.
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/config_families.h"
#include "runtime/checkpoint/decoder_keys.h"

namespace ft::config_families::gpt2 {
namespace {

using nlohmann::json;

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

}  // namespace

void AddFamilies(std::vector<ConfigFamily>& families) {
  families.push_back({"gpt2", {"GPT2LMHeadModel"}, ReadGpt2, WriteGpt2});
}

}  // namespace ft::config_families::gpt2
