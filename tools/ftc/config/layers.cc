#include "tools/ftc/config/layers.h"

#include <algorithm>

#include "compiler/optimizer/rules.h"
#include "fmt/format.h"
#include "tools/ftc/config/consistency.h"
#include "tools/ftc/config/settings.h"

namespace ftc {
namespace {

// What one layer says of each setting.
using Layer = std::vector<std::optional<Given>>;

// Of two givens of one setting in one layer: false when they contradict each other.
bool Join(const Setting& setting, Given& first, const Given& second) {
  if (first.text == second.text) return true;
  if (!setting.adds_up || first.text == "none" || second.text == "none") return false;
  Configuration both;
  if (!setting.value.set(first.text + "," + second.text, both).empty()) return false;
  first.text = setting.value.show(both);
  return true;
}

std::optional<Refusal> Merge(const std::vector<Given>& given, Layer& layer) {
  layer.assign(Settings().size(), std::nullopt);
  for (const Given& next : given) {
    std::optional<Given>& slot = layer[next.setting];
    if (!slot) {
      slot = next;
    } else if (!Join(Settings()[next.setting], *slot, next)) {
      return Refusal{fmt::format("{} and {} contradict each other: {} = {} or {}", NameOf(slot->origin),
                                 NameOf(next.origin), Settings()[next.setting].name, slot->text, next.text),
                     next.origin.from == Origin::From::kFlag};
    }
  }
  for (size_t i = 0; i < layer.size(); ++i) {
    if (!layer[i]) continue;
    for (const std::string& name : Settings()[i].stands_for) {
      std::optional<Given>& slot = layer[SettingIndex(name)];
      if (slot) continue;
      const Setting& part = Settings()[SettingIndex(name)];
      Configuration scratch;
      const auto& of_part = Settings()[i].part;
      part.value.set(of_part == nullptr ? layer[i]->text : of_part(name, layer[i]->text), scratch);
      slot = Given{SettingIndex(name), part.value.show(scratch), layer[i]->origin};
    }
  }
  return std::nullopt;
}

// Puts what a layer has over what is below it.
void Apply(const Layer& layer, Effective& effective) {
  for (size_t i = 0; i < layer.size(); ++i) {
    if (!layer[i]) continue;
    Settings()[i].value.set(layer[i]->text, effective.configuration);
    effective.origins[i] = layer[i]->origin;
  }
}

// What an optimizer has where nothing is said.
void ApplyUsual(Effective& effective) {
  for (const auto& [setting, text] :
       ft::compiler::findOptimizerRule(effective.configuration.options.optimizer)->usual) {
    if (!effective.IsGiven(setting))
      Settings()[SettingIndex(setting)].value.set(text, effective.configuration);
  }
}

}  // namespace

std::string NameOf(const Origin& origin) {
  switch (origin.from) {
    case Origin::From::kFile:
      return fmt::format("'{}' in {}:{}", origin.key, origin.file, origin.line);
    case Origin::From::kFlag:
    case Origin::From::kChosen:
      return origin.key;
    case Origin::From::kProgram:
      return fmt::format("{} in {}", origin.key, origin.file);
    case Origin::From::kDefault:
      break;
  }
  return "the default";
}

const Origin& Effective::OriginOf(std::string_view setting) const { return origins[SettingIndex(setting)]; }

bool Effective::IsGiven(std::string_view setting) const {
  return OriginOf(setting).from != Origin::From::kDefault;
}

std::variant<Effective, Refusal> Resolve(const std::vector<Given>& file, const std::vector<Given>& flags) {
  Effective effective;
  effective.origins.resize(Settings().size());
  Layer layer;
  for (const std::vector<Given>* given : {&file, &flags}) {
    if (std::optional<Refusal> refusal = Merge(*given, layer)) return *refusal;
    if (given == &flags) LetFlagsReplace(layer, effective);
    Apply(layer, effective);
  }
  ApplyUsual(effective);
  if (std::optional<Refusal> refusal = CheckConsistency(effective)) return *refusal;
  AddRemarks(effective);
  return effective;
}

std::string EffectiveText(std::string_view setting, const std::vector<Given>& file,
                          const std::vector<Given>& flags) {
  Effective effective;
  effective.origins.resize(Settings().size());
  for (const std::vector<Given>* given : {&file, &flags}) {
    Layer layer;
    Merge(*given, layer);
    Apply(layer, effective);
  }
  return Settings()[SettingIndex(setting)].value.show(effective.configuration);
}

}  // namespace ftc
