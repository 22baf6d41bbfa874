// Values of settings over a whole configuration: those of settings.def, and grammars that fill several
// fields.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "runtime/base/setting_value.h"
#include "tools/ftc/config/configuration.h"

namespace ftc {

using ft::JoinWords, ft::Plain, ft::ReadBool, ft::ReadBytes, ft::ReadInteger, ft::ReadNumber, ft::SetBytes,
    ft::SetInteger, ft::SetNames, ft::SetNumber, ft::SetWord, ft::ShowNumber, ft::SplitList, ft::Synonyms;

struct Value {
  // Fills the field of a configuration; returns what is wrong with the text, empty when nothing is.
  std::function<std::string(std::string_view text, Configuration& configuration)> set;
  // The field as text that `set` reads back to the same value.
  std::function<std::string(const Configuration& configuration)> show;
  std::string type;
  Synonyms synonyms;  // read by `set` too
};

// `field` maps a configuration (const or not) to a reference.
template <typename T, typename Field>
Value Of(ft::SettingValue<T> value, Field field) {
  using Stored = std::decay_t<decltype(field(std::declval<Configuration&>()))>;
  const auto set = [=, set = value.set](std::string_view text, Configuration& c) {
    T read{};
    const std::string mistake = set(text, read);
    if (mistake.empty()) field(c) = static_cast<Stored>(std::move(read));
    return mistake;
  };
  return {set, [=, show = value.show](const Configuration& c) { return show(static_cast<T>(field(c))); },
          value.type, value.synonyms};
}

// Those with a grammar of their own; see docs/train-yaml.md.
Value StrategyValue();
Value WrapValue();
Value OptimizerValue();
Value BetasValue();
Value LoraValue();
Value MeshValue();
Value RematValue();
Value OffloadValue();
Value LossScaleValue();
Value TargetValue();
Value AccumulateValue();

}  // namespace ftc
