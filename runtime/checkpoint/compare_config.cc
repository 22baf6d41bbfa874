#include "runtime/checkpoint/compare_config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/config_families.h"
#include "runtime/checkpoint/config_file.h"
#include "runtime/checkpoint/config_reader.h"

namespace ft {
namespace {

using nlohmann::json;

// Compares what has been read of the file with the model.
class Comparer {
 public:
  Comparer(const ConfigReader& config, const ModelFacts& model, int64_t seq_len)
      : config_(config), model_(model), file_(config.facts()), seq_len_(seq_len) {}

  void Compare(ConfigComparison& result) {
    for (const FactField& field : FactFields()) {
      if (!config_.Knows(field.member) || SameFact(GetFact(file_, field), GetFact(model_, field))) continue;
      switch (MeaningOf(field)) {
        case kPassedOver:
          break;
        case kDifference:
          result.differences.push_back(Describe(field));
          break;
        case kNote:
          if (!training_.empty()) training_ += "; ";
          training_ += Describe(field);
          break;
      }
    }
    if (!training_.empty()) result.notes.push_back("is trained differently: " + training_);
    AddNotes(result.notes);
  }

 private:
  enum Meaning { kPassedOver, kDifference, kNote };

  bool Both(std::string_view positions) const {
    return file_.positions == positions && model_.positions == positions;
  }
  // 0 where no position is hidden from a later one.
  int64_t Window(const ModelFacts& facts) const {
    return facts.sliding_window < seq_len_ ? facts.sliding_window : 0;
  }

  // What a difference in the fact means. Model types may differ when the facts do not.
  Meaning MeaningOf(const FactField& field) const {
    const FactMember& member = field.member;
    if (member == FactMember(&ModelFacts::model_type)) return kPassedOver;
    // One row of a table that is trained or not.
    if (member == FactMember(&ModelFacts::padding_token)) return kPassedOver;
    if (member == FactMember(&ModelFacts::max_positions)) return Both("learned") ? kDifference : kPassedOver;
    if (field.name.starts_with("rope_") || member == FactMember(&ModelFacts::layers_without_rope))
      return Both("rope") ? kDifference : kPassedOver;
    if (member == FactMember(&ModelFacts::sliding_window))
      return Window(file_) == Window(model_) ? kPassedOver : kDifference;
    if (member == FactMember(&ModelFacts::sliding_layers))
      return Window(file_) > 0 && Window(model_) > 0 ? kDifference : kPassedOver;
    const bool in_training =
        field.name.ends_with("_dropout") || member == FactMember(&ModelFacts::router_loss);
    return in_training ? kNote : kDifference;
  }

  std::string Describe(const FactField& field) const {
    return fmt::format("{}, the model's {} is {}", config_.Origin(field), field.name,
                       FactText(GetFact(model_, field)));
  }

  void AddNotes(std::vector<std::string>& notes) const {
    if (file_.sliding_window != model_.sliding_window && Window(file_) == Window(model_)) {
      notes.push_back(fmt::format("has sequences of {}, in which a sliding window of {} hides nothing",
                                  seq_len_, std::max(file_.sliding_window, model_.sliding_window)));
    }
    if (Both("rope") && file_.max_positions < seq_len_ && config_.Knows(&ModelFacts::max_positions)) {
      notes.push_back(
          fmt::format("has sequences of {}, the weights are of a model for {} (max_position_embeddings)",
                      seq_len_, file_.max_positions));
    }
  }

  const ConfigReader& config_;
  const ModelFacts& model_;
  const ModelFacts& file_;
  const int64_t seq_len_;
  std::string training_;
};

}  // namespace

bool SameFact(const FactValue& a, const FactValue& b) {
  const double* real = std::get_if<double>(&a);
  if (real == nullptr) return a == b;
  return static_cast<float>(*real) == static_cast<float>(std::get<double>(b));
}

absl::StatusOr<ConfigComparison> CompareConfig(const std::string& path, const ModelFacts& model,
                                               int64_t seq_len) {
  FT_ASSIGN_OR_RETURN(const json config, ReadConfigObject(path));
  ConfigComparison result;
  const auto type = config.find("model_type");
  if (type == config.end() || !type->is_string()) {
    result.no_model_type = true;
    result.differences.push_back("it does not say its model_type, so nothing in it is understood");
    return result;
  }
  const ConfigFamily* family = FindConfigFamily(type->get<std::string>());
  if (family == nullptr) {
    result.differences.push_back(fmt::format("model_type is {}, whose keys are not known; those of {} are",
                                             JsonText(*type), KnownFamilies()));
    return result;
  }
  ConfigReader reader(config, type->get<std::string>());
  family->read(reader);
  Comparer(reader, model, seq_len).Compare(result);
  if (reader.facts().causal && !reader.Flag("is_causal").value_or(true))
    result.differences.push_back(
        "is_causal is false: its attention sees later positions, the model's does not");
  for (std::string& fault : reader.TakeFaults()) result.differences.push_back(std::move(fault));
  return result;
}

}  // namespace ft
