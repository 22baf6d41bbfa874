// The config.json of BERT and RoBERTa: a masked language model, or a classifier of sequences.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "runtime/checkpoint/config_families.h"
#include "runtime/checkpoint/decoder_keys.h"
#include "runtime/checkpoint/encoder_keys.h"

namespace ft::config_families::bert {
namespace {

using nlohmann::json;

// Transformers' class, by model_type.
std::string Masked(std::string_view type) {
  return type == "bert" ? "BertForMaskedLM" : "RobertaForMaskedLM";
}
std::string Classifier(std::string_view type) {
  return type == "bert" ? "BertForSequenceClassification" : "RobertaForSequenceClassification";
}

// Of other heads the tensors tell whether they are the model's.
void ReadHead(ConfigReader& c) {
  const auto classes = c.Texts("architectures").value_or(std::vector<std::string>{});
  const bool is_masked = !classes.empty() && classes.front() == Masked(c.model_type());
  const bool is_classifier = !classes.empty() && classes.front() == Classifier(c.model_type());
  const int64_t labels = LabelsOf(c);
  c.Set(&ModelFacts::num_labels, is_masked ? 0 : labels, is_masked ? "architectures" : "id2label");
  if (!is_masked && !is_classifier) c.SetUnknown(&ModelFacts::num_labels);
  if (is_classifier) CheckClassifier(c, labels);
  // Of a classifier alone; null is the rate of all others.
  const std::optional<double> dropout = c.Real("classifier_dropout");
  if (is_classifier && dropout.has_value() && *dropout != c.facts().residual_dropout)
    c.Fault(
        fmt::format("classifier_dropout is {} and hidden_dropout_prob {}; one rate for both is understood",
                    *dropout, c.facts().residual_dropout));
}

void ReadBert(ConfigReader& c) {
  ReadEncoder(c, 0.1);
  ReadHead(c);
  c.Read("vocab_size", &ModelFacts::vocab_size, 30522);
  c.Read("max_position_embeddings", &ModelFacts::max_positions, 512);
  c.Read("type_vocab_size", &ModelFacts::token_types, 2);
  c.Read("tie_word_embeddings", &ModelFacts::tied_head, true);
  ReadPadding(c, c.model_type() == "bert" ? 0 : 1);
  c.Set(&ModelFacts::norm_placement, std::string("post"));
  if (c.Text("position_embedding_type").value_or("absolute") != "absolute")
    c.Fault("position_embedding_type is not absolute, which is not understood");
  for (const char* key : {"is_decoder", "add_cross_attention"}) {
    if (c.Flag(key).value_or(false)) c.Fault(fmt::format("{} is true, which is not understood", key));
  }
}

void WriteBert(const ModelFacts& facts, json& config) {
  WriteEncoder(facts, config);
  config["architectures"] = {facts.num_labels > 0 ? Classifier(facts.model_type) : Masked(facts.model_type)};
  config["max_position_embeddings"] = facts.max_positions;
  config["type_vocab_size"] = facts.token_types;
  config["position_embedding_type"] = "absolute";
  if (facts.num_labels > 0) WriteLabels(facts, config);
}

}  // namespace

void AddFamilies(std::vector<ConfigFamily>& families) {
  families.push_back({"bert", {"BertForMaskedLM", "BertForSequenceClassification"}, ReadBert, WriteBert});
  families.push_back(
      {"roberta", {"RobertaForMaskedLM", "RobertaForSequenceClassification"}, ReadBert, WriteBert});
}

}  // namespace ft::config_families::bert
