// The config.json of mixtures of experts: Mixtral and Qwen3-MoE.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "runtime/checkpoint/config_families.h"
#include "runtime/checkpoint/decoder_keys.h"

namespace ft::config_families::mixture {
namespace {

using nlohmann::json;

// Transformers 5 writes num_local_experts, 4 has num_experts for a Qwen3-MoE.
void ReadRouting(ConfigReader& c, int64_t experts, int64_t active) {
  const auto old_name = c.Number("num_experts");
  c.Read("num_local_experts", &Facts::num_experts, old_name.value_or(experts));
  if (old_name.has_value() && *old_name != c.facts().num_experts)
    c.Fault(fmt::format("num_experts is {} and num_local_experts {}", *old_name, c.facts().num_experts));
  c.Read("num_experts_per_tok", &Facts::experts_per_token, active);
  c.Read("router_aux_loss_coef", &Facts::router_loss, 0.001);
  // The loss of transformers' modules has the term only where the logits are put out.
  if (!c.Flag("output_router_logits").value_or(false))
    c.Set(&Facts::router_loss, 0.0, "output_router_logits");
}

void WriteRouting(const ModelFacts& facts, json& config) {
  config["num_local_experts"] = facts.num_experts;
  config["num_experts_per_tok"] = facts.experts_per_token;
  config["router_aux_loss_coef"] = facts.router_loss;
  config["output_router_logits"] = facts.router_loss != 0;
}

// Where `value` is not `expected` the model has something that no fact says.
void Expect(ConfigReader& c, std::string_view key, double value, double expected) {
  if (value != expected) c.Fault(fmt::format("{} is {}, which is not understood", key, value));
}

void ReadMixtral(ConfigReader& c) {
  ReadDecoder(c, {32000, 4096, 14336, 32, 32, 8, 0, 4096 * 32}, 1e6, false);
  if (!c.Has("rms_norm_eps")) c.Set(&Facts::norm_eps, 1e-5, "rms_norm_eps");
  c.ReadActivation("hidden_act", "silu");
  c.Read("sliding_window", &Facts::sliding_window, 0, 0);
  ReadRouting(c, 8, 2);
  c.Set(&Facts::normalized_routing, true);
  Expect(c, "router_jitter_noise", c.Real("router_jitter_noise").value_or(0), 0);
}

void WriteMixtral(const ModelFacts& facts, json& config) {
  WriteDecoder(facts, config);
  WriteRouting(facts, config);
  config["sliding_window"] = facts.sliding_window > 0 ? json(facts.sliding_window) : json(nullptr);
}

// Which layers have the window is the business of max_window_layers for some versions of transformers, and of
// nothing for others: then all have it.
void ReadWindow(ConfigReader& c) {
  ReadQwenWindow(c);
  const int64_t first = c.Number("max_window_layers").value_or(28);
  if (c.Flag("use_sliding_window").value_or(false) && first != 0)
    c.Fault(
        fmt::format("use_sliding_window is true and max_window_layers {}: versions of transformers differ "
                    "in which layers have the window then; 0 is understood",
                    first));
}

void ReadQwen3Moe(ConfigReader& c) {
  ReadDecoder(c, {151936, 2048, 6144, 24, 32, 4, 0, 32768}, 1e4, false);
  c.ReadActivation("hidden_act", "silu");
  ReadAttentionBias(c);
  c.Set(&Facts::qk_norm, std::string("head"));
  ReadWindow(c);
  ReadRouting(c, 128, 8);
  c.Read("moe_intermediate_size", &Facts::intermediate_size, 768);
  c.Read("norm_topk_prob", &Facts::normalized_routing, false);
  // Layers without experts, whose width would be intermediate_size.
  Expect(c, "decoder_sparse_step", static_cast<double>(c.Number("decoder_sparse_step").value_or(1)), 1);
  if (const auto dense = c.Numbers("mlp_only_layers"); dense.has_value() && !dense->empty())
    c.Fault("mlp_only_layers names layers without experts, which are not understood");
}

void WriteQwen3Moe(const ModelFacts& facts, json& config) {
  WriteDecoder(facts, config);
  WriteQwenWindow(facts, config);
  WriteRouting(facts, config);
  config["attention_bias"] = facts.qkv_bias;
  config["num_experts"] = facts.num_experts;
  config["moe_intermediate_size"] = facts.intermediate_size;
  config["norm_topk_prob"] = facts.normalized_routing;
  config["decoder_sparse_step"] = 1;
  config["mlp_only_layers"] = json::array();
}

}  // namespace

void AddFamilies(std::vector<ConfigFamily>& families) {
  families.push_back({"mixtral", {"MixtralForCausalLM"}, ReadMixtral, WriteMixtral});
  families.push_back({"qwen3_moe", {"Qwen3MoeForCausalLM"}, ReadQwen3Moe, WriteQwen3Moe});
}

}  // namespace ft::config_families::mixture
