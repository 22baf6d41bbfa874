#include "runtime/checkpoint/encoder_keys.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

namespace ft {

using nlohmann::json;
using Facts = ModelFacts;

static constexpr char kOneOfLabels[] = "single_label_classification";

void ReadEncoder(ConfigReader& c, double dropout) {
  c.Read("hidden_size", &Facts::hidden_size, 768);
  c.Read("intermediate_size", &Facts::intermediate_size, 3072);
  c.Read("num_hidden_layers", &Facts::num_layers, 12);
  c.Read("num_attention_heads", &Facts::num_heads, 12);
  c.Set(&Facts::num_kv_heads, c.facts().num_heads, "num_attention_heads");
  if (c.Knows(&Facts::num_heads) && c.Knows(&Facts::hidden_size)) {
    c.Set(&Facts::head_size, c.facts().hidden_size / c.facts().num_heads, "num_attention_heads");
  } else {
    c.SetUnknown(&Facts::head_size);
    c.SetUnknown(&Facts::num_kv_heads);
  }
  c.ReadActivation("hidden_act", "gelu");
  c.Read("layer_norm_eps", &Facts::norm_eps, 1e-12);
  c.Set(&Facts::positions, std::string("learned"));
  c.Set(&Facts::norm, std::string("layer_norm"));
  c.Set(&Facts::causal, false);
  for (bool Facts::* bias : {&Facts::qkv_bias, &Facts::attention_output_bias, &Facts::mlp_bias})
    c.Set(bias, true);
  c.Read("hidden_dropout_prob", &Facts::residual_dropout, dropout);
  c.Read("hidden_dropout_prob", &Facts::embedding_dropout, dropout);
  c.Read("attention_probs_dropout_prob", &Facts::attention_dropout, dropout);
}

void WriteEncoder(const ModelFacts& facts, json& config) {
  config["hidden_size"] = facts.hidden_size;
  config["intermediate_size"] = facts.intermediate_size;
  config["num_hidden_layers"] = facts.num_layers;
  config["num_attention_heads"] = facts.num_heads;
  config["hidden_act"] = facts.activation == "gelu_tanh" ? "gelu_pytorch_tanh" : facts.activation;
  config["layer_norm_eps"] = facts.norm_eps;
  config["hidden_dropout_prob"] = facts.residual_dropout;
  config["attention_probs_dropout_prob"] = facts.attention_dropout;
}

int64_t LabelsOf(ConfigReader& c) {
  const int64_t labels = c.Size("id2label").value_or(c.Number("num_labels").value_or(2));
  c.Ignore({"label2id"});
  return labels;
}

void CheckClassifier(ConfigReader& c, int64_t labels) {
  const std::string problem = c.Text("problem_type").value_or(kOneOfLabels);
  if (problem != kOneOfLabels)
    c.Fault(fmt::format("problem_type is {}, whose loss is another one; {} is understood", problem,
                        kOneOfLabels));
  else if (labels == 1)
    c.Fault("there is one label, for which transformers trains a regression, which is not understood");
}

void WriteLabels(const ModelFacts& facts, json& config) {
  json& names = config["id2label"] = json::object();
  json& ids = config["label2id"] = json::object();
  for (int64_t i = 0; i < facts.num_labels && i < kMaxConfigList; ++i) {
    const std::string name = fmt::format("LABEL_{}", i);
    names[std::to_string(i)] = name;
    ids[name] = i;
  }
}

}  // namespace ft
