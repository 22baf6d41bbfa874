// How the flags of ftexec are read that no setting of a plan is like.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "runtime/base/did_you_mean.h"
#include "runtime/base/setting_value.h"
#include "tools/ftexec/flags.h"

namespace ft::flag_value {

// One of a few words, each standing for a value. An optional one that is not given is as the first.
template <typename T>
SettingValue<T> Choice(std::vector<std::pair<std::string_view, T>> words) {
  std::vector<std::string_view> names;
  for (const auto& [word, value] : words) names.push_back(word);
  const auto set = [=](std::string_view text, T& value) {
    for (const auto& [word, meant] : words) {
      if (word == text) return value = meant, std::string();
    }
    return UnknownName("value", text, names);
  };
  const auto show = [=](const T& value) {
    for (const auto& [word, meant] : words) {
      if (meant == value) return std::string(word);
    }
    constexpr bool is_optional = requires { value.has_value(); };
    return std::string(is_optional ? names[0] : "");
  };
  return {.set = set, .show = show, .type = fmt::format("{}", fmt::join(names, "|"))};
}

template <typename T>
SettingValue<T> OnOff() {
  return Choice<T>({{"on", true}, {"off", false}});
}

// Its default as flags are given it.
template <typename T, typename Field>
std::string Shown(const SettingValue<T>& value, const Field& field) {
  return value.show(static_cast<T>(field));
}

// Words of a machine's instruction sets, and auto.
SettingValue<std::optional<cpu::Isa>> InstructionSet();
SettingValue<std::string> Text();
SettingValue<std::vector<std::string>> Texts();
SettingValue<absl::Duration> Seconds(double low, double high);
SettingValue<std::vector<DataEntry>> Data();
// As Data, without weights.
SettingValue<std::vector<DataEntry>> EvalData();
// "500": steps; "30m", "90s", "2h": time.
SettingValue<SaveInterval> SaveEvery();
SettingValue<std::optional<Mesh>> MeshValue();
// "GBPS,US"
SettingValue<std::optional<EmulatedLink>> Link();

}  // namespace ft::flag_value
