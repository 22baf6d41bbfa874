// The config.json of BERT: a masked language model, or a classifier of sequences.
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/config_families.h"
#include "runtime/checkpoint/encoder_keys.h"

namespace ft::config_families::bert {
namespace {

using nlohmann::json;

constexpr char kMasked[] = "BertForMaskedLM";
constexpr char kClassifier[] = "BertForSequenceClassification";

// Of other heads the tensors tell whether they are the model's.
void ReadHead(ConfigReader& c) {
  const auto classes = c.Texts("architectures").value_or(std::vector<std::string>{});
  const bool is_masked = !classes.empty() && classes.front() == kMasked;
  const bool is_classifier = !classes.empty() && classes.front() == kClassifier;
  const int64_t labels = LabelsOf(c);
  c.Set(&ModelFacts::num_labels, is_masked ? 0 : labels, is_masked ? "architectures" : "id2label");
  if (!is_masked && !is_classifier) c.SetUnknown(&ModelFacts::num_labels);
}

void ReadBert(ConfigReader& c) {
  ReadEncoder(c, 0.1);
  ReadHead(c);
  c.Read("vocab_size", &ModelFacts::vocab_size, 30522);
  c.Read("max_position_embeddings", &ModelFacts::max_positions, 512);
  c.Read("type_vocab_size", &ModelFacts::token_types, 2);
  c.Read("tie_word_embeddings", &ModelFacts::tied_head, true);
  c.Set(&ModelFacts::norm_placement, std::string("post"));
  if (c.Text("position_embedding_type").value_or("absolute") != "absolute")
    c.Fault("position_embedding_type is not absolute, which is not understood");
}

void WriteBert(const ModelFacts& facts, json& config) {
  WriteEncoder(facts, config);
  config["architectures"] = {facts.num_labels > 0 ? kClassifier : kMasked};
  config["max_position_embeddings"] = facts.max_positions;
  config["type_vocab_size"] = facts.token_types;
  config["position_embedding_type"] = "absolute";
  if (facts.num_labels > 0) WriteLabels(facts, config);
}

}  // namespace

void AddFamilies(std::vector<ConfigFamily>& families) {
  families.push_back({"bert", "", ReadBert, WriteBert});
}

}  // namespace ft::config_families::bert
