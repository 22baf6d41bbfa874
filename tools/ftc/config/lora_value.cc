// How low-rank adapters are asked for: r:16,alpha:32,targets:q_proj,v_proj.
#include <algorithm>
#include <iterator>
#include <optional>

#include "fmt/format.h"
#include "runtime/base/did_you_mean.h"
#include "tools/ftc/config/values.h"

namespace ftc {
namespace {

using ft::compiler::CompileOptions;

// Keys of `lora`, and what PEFT calls them.
constexpr std::pair<std::string_view, std::string_view> kLoraKeys[] = {
    {"r", "r"},
    {"rank", "r"},
    {"alpha", "alpha"},
    {"lora_alpha", "alpha"},
    {"targets", "targets"},
    {"target_modules", "targets"},
    {"dropout", "dropout"},
    {"lora_dropout", "dropout"},
    {"rslora", "rslora"},
    {"use_rslora", "rslora"},
    {"modules_to_save", "modules_to_save"},
};

std::string SetLoraKey(std::string_view key, const std::vector<std::string>& values, CompileOptions& read) {
  const std::string text = JoinWords(values, ",");
  const auto number = [&](double low, double high, double& to) {
    const std::string mistake = SetNumber(text, {.low = low, .high = high}, to);
    return mistake.empty() ? "" : fmt::format("{}: {}", key, mistake);
  };
  if (key == "r") {
    const std::string mistake = SetInteger(text, 1, 1 << 16, read.loraRank);
    return mistake.empty() ? "" : fmt::format("r: {}", mistake);
  }
  if (key == "alpha") return number(1e-30, 1e30, read.loraAlpha);
  if (key == "dropout") return number(0, 0.999, read.loraDropout);
  if (key == "targets") return read.loraTargets = values, "";
  if (key == "modules_to_save") return read.loraSave = values, "";
  const std::optional<bool> on = ReadBool(text);
  if (!on.has_value()) return fmt::format("{}: '{}' is neither on nor off", key, text);
  read.loraRslora = *on;
  return "";
}

// A word that has a colon begins a key, and those without go on with the values of the one before.
std::string ReadLora(std::string_view text, CompileOptions& read) {
  std::vector<std::pair<std::string_view, std::vector<std::string>>> given;
  for (const std::string& word : SplitList(text)) {
    const size_t colon = word.find(':');
    if (colon == std::string::npos) {
      if (given.empty())
        return fmt::format("'{}' belongs to no key; such as r:16,alpha:32,targets:q_proj,v_proj", word);
      given.back().second.push_back(word);
      continue;
    }
    const std::string name = Plain(word.substr(0, colon));
    const auto* key = std::find_if(std::begin(kLoraKeys), std::end(kLoraKeys),
                                   [&](const auto& known) { return known.first == name; });
    if (key == std::end(kLoraKeys))
      return ft::UnknownName("key of lora", name,
                             {"r", "alpha", "targets", "dropout", "rslora", "modules_to_save"});
    if (std::any_of(given.begin(), given.end(),
                    [&](const auto& other) { return other.first == key->second; }))
      return fmt::format("{} is given twice", key->second);
    given.push_back({key->second, {word.substr(colon + 1)}});
    if (given.back().second.front().empty()) return fmt::format("{}: has no value", key->second);
  }
  for (const auto& [key, values] : given) {
    const std::string mistake = SetLoraKey(key, values, read);
    if (!mistake.empty()) return mistake;
  }
  for (const std::string_view wanted : {"r", "alpha", "targets"}) {
    if (std::none_of(given.begin(), given.end(), [&](const auto& one) { return one.first == wanted; }))
      return fmt::format("'{}' has no {}; such as r:16,alpha:32,targets:q_proj,v_proj", text, wanted);
  }
  return "";
}

std::string SetLora(std::string_view text, Configuration& c) {
  CompileOptions read;
  if (Plain(text) != "none") {
    std::string mistake = ReadLora(text, read);
    if (!mistake.empty()) return mistake;
  }
  c.options.loraRank = read.loraRank;
  c.options.loraAlpha = read.loraAlpha;
  c.options.loraDropout = read.loraDropout;
  c.options.loraRslora = read.loraRslora;
  c.options.loraTargets = read.loraTargets;
  c.options.loraSave = read.loraSave;
  return "";
}

std::string ShowLora(const Configuration& c) {
  const CompileOptions& options = c.options;
  if (options.loraRank == 0) return "none";
  std::string text = fmt::format("r:{},alpha:{},targets:{}", options.loraRank, ShowNumber(options.loraAlpha),
                                 JoinWords(options.loraTargets, ","));
  if (options.loraDropout > 0) text += ",dropout:" + ShowNumber(options.loraDropout);
  if (options.loraRslora) text += ",rslora:on";
  if (!options.loraSave.empty()) text += ",modules_to_save:" + JoinWords(options.loraSave, ",");
  return text;
}

}  // namespace

Value LoraValue() {
  return {SetLora,
          ShowLora,
          "r:N,alpha:X,targets:PAT[,PAT][,dropout:X][,rslora:on][,modules_to_save:PAT], or none",
          {}};
}

}  // namespace ftc
