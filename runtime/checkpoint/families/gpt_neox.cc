// The config.json of GPT-NeoX and Pythia.
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/config_families.h"
#include "runtime/checkpoint/decoder_keys.h"

namespace ft::config_families::gpt_neox {
namespace {

using nlohmann::json;

void ReadGptNeox(ConfigReader& c) {
  ReadSizes(c, {50432, 6144, 24576, 44, 64, 0, 0, 2048});
  // Names that transformers 4 has for them.
  const double theta = c.Real("rotary_emb_base").value_or(1e4);
  ReadRope(c, theta, c.Real("rotary_pct").value_or(0.25));
  c.Set(&Facts::norm, std::string("layer_norm"));
  c.Read("layer_norm_eps", &Facts::norm_eps, 1e-5);
  c.ReadActivation("hidden_act", "gelu");
  c.Read("attention_bias", &Facts::qkv_bias, true);
  c.Read("attention_bias", &Facts::attention_output_bias, true);
  c.Set(&Facts::mlp_bias, true);
  c.Read("use_parallel_residual", &Facts::parallel_residual, true);
  c.Read("tie_word_embeddings", &Facts::tied_head, false);
  c.Read("hidden_dropout", &Facts::embedding_dropout, 0, 0);
  c.Read("hidden_dropout", &Facts::residual_dropout, 0, 0);
  c.Read("attention_dropout", &Facts::attention_dropout, 0, 0);
  c.Ignore({"classifier_dropout"});
}

void WriteGptNeox(const ModelFacts& facts, json& config) {
  config["hidden_size"] = facts.hidden_size;
  config["intermediate_size"] = facts.intermediate_size;
  config["num_hidden_layers"] = facts.num_layers;
  config["num_attention_heads"] = facts.num_heads;
  config["max_position_embeddings"] = facts.max_positions;
  WriteRopeOfPart(facts, config);
  config["rotary_emb_base"] = facts.rope_theta;
  config["rotary_pct"] = facts.rope_fraction;
  config["layer_norm_eps"] = facts.norm_eps;
  config["hidden_act"] = ActivationName(facts.activation, "gelu_pytorch_tanh");
  config["attention_bias"] = facts.qkv_bias;
  config["use_parallel_residual"] = facts.parallel_residual;
  config["hidden_dropout"] = facts.residual_dropout;
  config["attention_dropout"] = facts.attention_dropout;
}

}  // namespace

void AddFamilies(std::vector<ConfigFamily>& families) {
  families.push_back(
      {"gpt_neox", {"GPTNeoXForCausalLM"}, ReadGptNeox, WriteGptNeox, {{"embed_out", "lm_head"}}});
}

}  // namespace ft::config_families::gpt_neox
