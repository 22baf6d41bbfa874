#include "runtime/checkpoint/state/peft.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/config_families.h"
#include "runtime/checkpoint/config_file.h"
#include "runtime/plan/plan_facts.h"

namespace ft {
namespace {

using nlohmann::json;

constexpr std::pair<std::string_view, std::string_view> kTasks[] = {
    {"ForCausalLM", "CAUSAL_LM"}, {"LMHeadModel", "CAUSAL_LM"}, {"ForSequenceClassification", "SEQ_CLS"}};

constexpr const char* kOtherAdapters[] = {"use_dora",
                                          "lora_bias",
                                          "use_qalora",
                                          "use_bdlora",
                                          "alora_invocation_tokens",
                                          "layer_replication",
                                          "kasa_config",
                                          "velora_config",
                                          "monteclora_config",
                                          "arrow_config",
                                          "megatron_config",
                                          "trainable_token_indices"};

std::string_view ModuleOf(std::string_view parameter) { return parameter.substr(0, parameter.rfind('.')); }

std::string_view LastPart(std::string_view module) { return module.substr(module.rfind('.') + 1); }

// Null where it is none that PEFT has a class for.
json TaskOf(const json& parsed) {
  const json* classes =
      parsed.is_object() && parsed.contains("architectures") ? &parsed["architectures"] : nullptr;
  if (classes == nullptr || !classes->is_array() || classes->empty() || !classes->front().is_string())
    return nullptr;
  const std::string name = classes->front().get<std::string>();
  for (const auto& [suffix, task] : kTasks) {
    if (std::string_view(name).ends_with(suffix)) return task;
  }
  return nullptr;
}

// "q_proj" means every module of which it is the last part.
json NamesOf(const google::protobuf::RepeatedPtrField<std::string>& modules,
             const std::vector<std::string>& parameters, std::string_view model_type) {
  std::set<std::string> meant, last;
  for (const std::string& module : modules) meant.insert(NameInModules(model_type, module));
  for (const std::string& module : meant) last.emplace(LastPart(module));
  for (const std::string& parameter : parameters) {
    const std::string module = NameInModules(model_type, std::string(ModuleOf(parameter)));
    if (last.contains(std::string(LastPart(module))) && !meant.contains(module)) return meant;
  }
  return last;
}

}  // namespace

std::string PeftName(const google::protobuf::RepeatedPtrField<proto::Attribute>& facts,
                     std::string_view parameter) {
  const absl::StatusOr<std::optional<ModelFacts>> known = FactsOf(facts);
  const std::string type = known.ok() && known->has_value() ? (*known)->model_type : "";
  return "base_model.model." + NameInModules(type, std::string(parameter));
}

std::string PeftConfigJson(const proto::Lora& lora, std::string_view config, std::string_view base,
                           const std::vector<std::string>& parameters) {
  const json model = json::parse(config, nullptr, /*allow_exceptions=*/false);
  const std::string type = model.is_object() ? model.value("model_type", "") : "";
  json out;
  out["peft_type"] = "LORA";
  out["task_type"] = TaskOf(model);
  out["base_model_name_or_path"] = base.empty() ? json() : json(std::string(base));
  out["inference_mode"] = true;
  out["r"] = lora.rank();
  // PEFT has a whole number.
  const bool is_whole = lora.alpha() == std::floor(lora.alpha()) && lora.alpha() < 1e15;
  out["lora_alpha"] = is_whole ? json(static_cast<int64_t>(lora.alpha())) : json(lora.alpha());
  out["lora_dropout"] = lora.dropout();
  out["use_rslora"] = lora.rslora();
  out["fan_in_fan_out"] = lora.input_first();
  out["bias"] = "none";
  out["init_lora_weights"] = true;
  out["target_modules"] = NamesOf(lora.modules(), parameters, type);
  // PEFT takes any module whose name ends so, "input_layernorm" for "norm": whole names alone mean one.
  json saved = json::array();
  for (const std::string& module : lora.saved()) saved.push_back(NameInModules(type, module));
  out["modules_to_save"] = saved.empty() ? json() : saved;
  return out.dump(2, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace) + "\n";
}

absl::Status CheckPeftConfig(const std::string& path, const proto::Lora& lora) {
  FT_ASSIGN_OR_RETURN(const json config, ReadConfigObject(path));
  std::vector<std::string> differences;
  const auto compare = [&](const char* key, const json& usual, const json& wanted) {
    const json value = config.contains(key) && !config[key].is_null() ? config[key] : usual;
    if (value != wanted)
      differences.push_back(fmt::format("{} is {}, the plan has {}", key, value.dump(), wanted.dump()));
  };
  compare("peft_type", nullptr, "LORA");
  compare("r", 8, lora.rank());
  compare("lora_alpha", 8, lora.alpha());
  compare("use_rslora", false, lora.rslora());
  compare("bias", "none", "none");
  for (const char* pattern : {"rank_pattern", "alpha_pattern"})
    compare(pattern, json::object(), json::object());
  // What makes other adapters of them, or another base.
  for (const char* other : kOtherAdapters) {
    const auto found = config.find(other);
    if (found != config.end() && !found->is_null() && *found != false)
      differences.push_back(fmt::format("{} is {}, which is not known", other, found->dump()));
  }
  const json start = config.value("init_lora_weights", json(true));
  if (!start.is_null() && !start.is_boolean() && start != "gaussian" && start != "eva" &&
      start != "orthogonal")
    differences.push_back(fmt::format("init_lora_weights is {}, which changes the base", start.dump()));
  if (differences.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("'{}': {}", path, fmt::join(differences, "; ")));
}

}  // namespace ft
