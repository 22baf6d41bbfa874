#include "runtime/checkpoint/config_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/compare_config.h"
#include "runtime/checkpoint/config_families.h"
#include "runtime/checkpoint/config_file.h"
#include "runtime/checkpoint/config_reader.h"
#include "runtime/checkpoint/inert_keys.h"

namespace ft {
namespace {

using nlohmann::json;

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

// Of where the weights lay, not of what they are.
bool IsOfFile(std::string_view key) {
  for (const std::string_view own :
       {"architectures", "dtype", "torch_dtype", "transformers_version", "_name_or_path"}) {
    if (key == own) return true;
  }
  return false;
}

// Keys of `origin` that change nothing, where `config` says nothing; names of labels in the place of numbers.
void TakeOver(const std::string& origin, json& config) {
  if (origin.empty()) return;
  const absl::StatusOr<json> original = ReadConfigObject(origin + "/config.json");
  if (!original.ok() || original->value("model_type", json()) != config["model_type"]) return;
  for (const auto& [key, value] : original->items()) {
    const bool is_label = key == "id2label" || key == "label2id";
    if (!IsInertKey(key) || IsOfFile(key)) continue;
    if (!config.contains(key) ? !is_label : config[key].is_null()) config[key] = value;
    if (is_label && config.contains(key) && value.is_object() && value.size() == config[key].size())
      config[key] = value;
  }
}

}  // namespace

absl::StatusOr<std::string> ConfigJson(const ModelFacts& facts, DType dtype, const std::string& origin) {
  if (const std::string error = CheckFacts(facts); !error.empty()) return absl::InvalidArgumentError(error);
  const ConfigFamily* family = FindConfigFamily(facts.model_type);
  if (family == nullptr)
    return absl::InvalidArgumentError(
        fmt::format("the keys of the model_type {} are not known", Quote(facts.model_type)));
  if (facts.num_layers > kMaxConfigList)
    return absl::InvalidArgumentError(fmt::format("the model has {} layers, a config.json has {} at most",
                                                  facts.num_layers, kMaxConfigList));
  json config;
  config["model_type"] = facts.model_type;
  if (!family->architectures.empty()) config["architectures"] = {family->architectures.front()};
  if (const std::string_view name = TorchName(dtype); !name.empty()) {
    config["dtype"] = name;
    config["torch_dtype"] = name;
  }
  if (facts.vocab_size > 0) config["vocab_size"] = facts.vocab_size;
  config["tie_word_embeddings"] = facts.tied_head;
  // The classes' defaults are of other vocabularies.
  for (const char* token : {"bos_token_id", "eos_token_id", "pad_token_id"}) config[token] = nullptr;
  if (facts.padding_token >= 0) config["pad_token_id"] = facts.padding_token;
  family->write(facts, config);
  TakeOver(origin, config);
  const auto replace = json::error_handler_t::replace;
  // As a reader will see it: what is no number of JSON or no UTF-8 has become something else.
  const std::string text = config.dump(2, ' ', /*ensure_ascii=*/true, replace) + "\n";
  FT_RETURN_IF_ERROR(CheckReadsBack(json::parse(text), facts, *family));
  return text;
}

}  // namespace ft
