// Values with a grammar of their own.
#include <algorithm>
#include <cctype>

#include "absl/strings/ascii.h"
#include "compiler/optimizer/rules.h"
#include "compiler/pipeline/offload.h"
#include "compiler/pipeline/wrap.h"
#include "compiler/remat/policy.h"
#include "compiler/shard/strategy.h"
#include "fmt/format.h"
#include "runtime/base/did_you_mean.h"
#include "runtime/plan/mesh.h"
#include "runtime/targets/shipped_targets.h"
#include "tools/ftc/config/target_file.h"
#include "tools/ftc/config/values.h"

namespace ftc {
namespace {

using ft::compiler::CompileOptions;

std::string SetStrategy(std::string_view text, Configuration& c) {
  if (Plain(text) == kAutoStrategy) {
    c.options.strategy = kAutoStrategy;
    return "";
  }
  const auto* strategy = ft::compiler::lookupStrategy(Plain(text));
  if (strategy == nullptr) {
    std::vector<std::string> names = ft::compiler::strategyNames();
    names.emplace_back(kAutoStrategy);
    return ft::UnknownName("strategy", text, std::vector<std::string_view>(names.begin(), names.end()));
  }
  c.options.strategy = strategy->name.str();
  return "";
}

const Synonyms& WrapSynonyms() {
  static const Synonyms* const kSynonyms = new Synonyms{{"transformer_auto_wrap", "transformer"},
                                                        {"transformer_based_wrap", "transformer"},
                                                        {"size_based_auto_wrap", "size"},
                                                        {"size_based_wrap", "size"},
                                                        {"no_wrap", "none"},
                                                        {"null", "none"}};
  return *kSynonyms;
}

std::string SetWrap(std::string_view text, Configuration& c) {
  constexpr std::string_view kNames = "names:";
  CompileOptions& options = c.options;
  if (Plain(text.substr(0, kNames.size())) != kNames) {
    std::string word;
    const std::string mistake =
        SetWord("wrap policy", text, {"transformer", "size", "none", "names:PAT"}, WrapSynonyms(), word);
    if (!mistake.empty()) return mistake;
    if (word == "names:PAT") return "names: wants globs of layers, such as names:transformer.h.*";
    options.wrap = word;
    options.wrapNames.clear();
    return "";
  }
  const std::string mistake = SetNames(text.substr(kNames.size()), options.wrapNames);
  if (mistake.empty()) options.wrap = "names";
  return mistake;
}

std::string SetBetas(std::string_view text, Configuration& c) {
  const std::vector<std::string> parts = SplitList(text);
  std::vector<double> betas;
  for (const std::string& part : parts) {
    const double beta = ReadNumber(part).value_or(-1);
    if (beta >= 0 && beta < 1) betas.push_back(beta);
  }
  if (parts.size() != 2 || betas.size() != 2)
    return fmt::format("wants two numbers in [0, 1), such as 0.9,0.95, not '{}'", text);
  c.options.beta1 = betas[0];
  c.options.beta2 = betas[1];
  return "";
}

std::string SetMesh(std::string_view text, Configuration& c) {
  if (Plain(text) == "none") return c.options.mesh.reset(), "";
  const absl::StatusOr<ft::Mesh> mesh = ft::ParseMesh(text);
  if (!mesh.ok()) return std::string(mesh.status().message());
  c.options.mesh = {mesh->replica, mesh->shard};
  return "";
}

std::string SetRemat(std::string_view text, Configuration& c) {
  const size_t colon = std::min(text.find(':'), text.size());
  std::string policy = Plain(text.substr(0, colon));
  const std::string_view argument = text.substr(std::min(colon + 1, text.size()));
  if (policy == "budget") {
    uint64_t bytes = 0;
    const std::string mistake = SetBytes(argument, bytes);
    if (!mistake.empty()) return mistake;
    policy += ":" + std::to_string(bytes);
  } else if (colon < text.size()) {
    policy += ":" + JoinWords(SplitList(Plain(argument)), ",");
  }
  const absl::StatusOr<ft::compiler::RematPolicy> read = ft::compiler::parseRematPolicy(policy);
  if (!read.ok()) return std::string(read.status().message());
  c.options.remat = policy;
  return "";
}

std::string SetOffload(std::string_view text, Configuration& c) {
  std::vector<std::string> given, words;
  if (Plain(text) != "none") given = SplitList(text);
  for (const std::string& word : given) words.push_back(Plain(word));
  const std::string unknown = ft::compiler::setOffload(words, c.options);
  if (unknown.empty()) return "";
  const auto at = std::find(words.begin(), words.end(), unknown) - words.begin();
  return ft::UnknownName("part to offload", given[static_cast<size_t>(at)],
                         {"optimizer", ft::compiler::kOffloadStep, "parameters", "activations", "none"});
}

std::string ShowOffload(const Configuration& c) { return ft::compiler::offloadText(c.options); }

// Gradients are divided by it: below the normal numbers of fp32 (1.18e-38) that would be infinite.
constexpr ft::NumberRange kLossScales = {.low = 1.2e-38, .high = 1e30};

std::string SetLossScale(std::string_view text, Configuration& c) {
  double& scale = c.options.lossScale;
  const std::optional<double> number = ReadNumber(text);
  if (Plain(text) == "dynamic" || number == 0.0) return scale = 0, "";
  if (SetNumber(text, kLossScales, scale).empty()) return "";
  return fmt::format("'{}' is neither dynamic (or 0) nor a number from {} to {}", text, kLossScales.low,
                     kLossScales.high);
}

std::string SetTarget(std::string_view text, Configuration& c) {
  if (IsTargetFile(text)) {
    if (std::any_of(text.begin(), text.end(), [](unsigned char sign) { return std::iscntrl(sign) != 0; }))
      return "a file's name with a control character in it";
    c.target = text;
    return "";
  }
  const std::string name = absl::AsciiStrToLower(absl::string_view(text.data(), text.size()));
  if (ft::FindTarget(name) == nullptr) {
    const std::vector<std::string> names = ft::TargetNames();
    return ft::UnknownName("target", text, std::vector<std::string_view>(names.begin(), names.end()));
  }
  c.target = name;
  return "";
}

}  // namespace

Value StrategyValue() {
  return {SetStrategy,
          [](const Configuration& c) { return c.options.strategy; },
          JoinWords(ft::compiler::strategyNames(), ", ") + ", auto",
          {}};
}

Value WrapValue() {
  const auto show = [](const Configuration& c) { return ft::compiler::wrapText(c.options); };
  return {SetWrap, show, "transformer, size, none, names:PAT[,PAT]", WrapSynonyms()};
}

Value OptimizerValue() {
  std::vector<std::string> names;
  for (const ft::compiler::OptimizerRule& rule : ft::compiler::optimizerRules())
    names.emplace_back(rule.name);
  return Of(ft::setting::Word("optimizer", names,
                              {{"adamw_torch", "adamw"},
                               {"adamw_torch_fused", "adamw"},
                               {"adamw_hf", "adamw"},
                               {"lion_32bit", "lion"}}),
            [](auto& c) -> auto& { return c.options.optimizer; });
}

Value BetasValue() {
  const auto show = [](const Configuration& c) {
    return ShowNumber(c.options.beta1) + "," + ShowNumber(c.options.beta2);
  };
  return {SetBetas, show, "two numbers in [0, 1)", {}};
}

Value MeshValue() {
  const auto show = [](const Configuration& c) {
    const auto& mesh = c.options.mesh;
    return mesh ? ft::MeshText({.replica = mesh->first, .shard = mesh->second}) : "none";
  };
  return {SetMesh, show, "replica:R,shard:S, or none", {}};
}

Value RematValue() {
  return {SetRemat,
          [](const Configuration& c) { return c.options.remat; },
          "none, full, every_n:N, segments:K, segments:sqrt, ops:attention,mlp,norms, budget:BYTES",
          {}};
}

Value OffloadValue() {
  return {SetOffload, ShowOffload, "optimizer, optimizer:step, parameters, activations, or none", {}};
}

Value LossScaleValue() {
  const auto show = [](const Configuration& c) {
    const double scale = c.options.lossScale;
    return scale == 0 ? "dynamic" : ShowNumber(scale);
  };
  return {SetLossScale,
          show,
          fmt::format("dynamic (or 0), or a number from {} to {}", kLossScales.low, kLossScales.high),
          {}};
}

Value TargetValue() {
  return {SetTarget,
          [](const Configuration& c) { return c.target; },
          JoinWords(ft::TargetNames(), ", ") + "; or a file, such as my.yaml (docs/targets.md)",
          {}};
}

Value AccumulateValue() {
  const auto set = [](std::string_view text, Configuration& c) {
    std::string word;
    const std::string mistake = SetWord("time to communicate", text, {"last", "each"}, {}, word);
    if (mistake.empty()) c.options.accumulateEach = word == "each";
    return mistake;
  };
  return {set,
          [](const Configuration& c) { return std::string(c.options.accumulateEach ? "each" : "last"); },
          "last, each",
          {}};
}

}  // namespace ftc
