#include "runtime/checkpoint/config_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "runtime/base/printable.h"
#include "runtime/checkpoint/compare_config.h"
#include "runtime/checkpoint/config_families.h"
#include "runtime/checkpoint/config_reader.h"

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

}  // namespace

absl::StatusOr<std::string> ConfigJson(const ModelFacts& facts, DType dtype) {
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
  if (!family->architecture.empty()) config["architectures"] = {family->architecture};
  if (const std::string_view name = TorchName(dtype); !name.empty()) {
    config["dtype"] = name;
    config["torch_dtype"] = name;
  }
  if (facts.vocab_size > 0) config["vocab_size"] = facts.vocab_size;
  config["tie_word_embeddings"] = facts.tied_head;
  // The classes' defaults are of other vocabularies.
  for (const char* token : {"bos_token_id", "eos_token_id", "pad_token_id"}) config[token] = nullptr;
  family->write(facts, config);
  const auto replace = json::error_handler_t::replace;
  // As a reader will see it: what is no number of JSON or no UTF-8 has become something else.
  const std::string text = config.dump(2, ' ', /*ensure_ascii=*/true, replace) + "\n";
  FT_RETURN_IF_ERROR(CheckReadsBack(json::parse(text), facts, *family));
  return text;
}

}  // namespace ft
