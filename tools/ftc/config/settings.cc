#include "tools/ftc/config/settings.h"

#include <algorithm>

#include "fmt/format.h"
#include "runtime/base/cluster_op.h"

namespace ftc {
namespace {

// A plan keeps numbers as doubles.
ft::SettingValue<int64_t> Exact(ft::SettingValue<int64_t> value) {
  value.set = [set = value.set, least = static_cast<int64_t>(value.range.low)](std::string_view text,
                                                                               int64_t& number) {
    const std::string mistake = set(text, number);
    if (!mistake.empty() || (number <= ft::kExactInteger && number >= -ft::kExactInteger)) return mistake;
    return fmt::format("'{}' is not in the range {} to {}", text, std::max(least, -ft::kExactInteger),
                       ft::kExactInteger);
  };
  return value;
}
template <typename T>
ft::SettingValue<T> Exact(ft::SettingValue<T> value) {
  return value;
}

std::vector<Setting> MakeSettings() {
  using namespace ft::setting;
  using ft::kExactInteger, ft::kMostF32;
  std::vector<Setting> all;
  std::string group;
  const auto add = [&](const char* name, const char* placeholder, Value value, const char* help,
                       ft::SettingTraits traits = {}) {
    all.push_back({std::move(traits), ft::SettingKey(name), group, placeholder, std::move(value), help, {}});
  };
#define FT_GROUP(TITLE) group = TITLE;
#define FT_GRAMMAR(NAME, VALUE, PLACEHOLDER, HELP, ...) \
  add(#NAME, PLACEHOLDER, VALUE, HELP, ft::SettingTraits{__VA_ARGS__});
#define FT_SETTING(TYPE, NAME, DEFAULT, PASS, VALUE, PLACEHOLDER, HELP, ...)                \
  add(#NAME, PLACEHOLDER, Of(VALUE, [](auto& c) -> auto& { return c.options.NAME; }), HELP, \
      ft::SettingTraits{__VA_ARGS__});
#define FT_RUN FT_PLANNED
#define FT_PLANNED(TYPE, NAME, DEFAULT, KEEP, VALUE, PLACEHOLDER, HELP, ...)                   \
  add(#NAME, PLACEHOLDER, Of(Exact(VALUE), [](auto& c) -> auto& { return c.run.NAME; }), HELP, \
      ft::SettingTraits{__VA_ARGS__});
#include "runtime/base/settings.def"
  const auto spell = [&](std::string_view setting, Alias alias) {
    for (Setting& row : all) {
      if (row.name == setting) row.aliases.push_back(std::move(alias));
    }
  };
#define FT_SPELLING(SETTING, ...) spell(#SETTING, Alias{__VA_ARGS__});
#include "tools/ftc/config/foreign_keys.def"
  return all;
}

}  // namespace

const std::vector<Setting>& Settings() {
  static const auto* const kAll = new std::vector<Setting>(MakeSettings());
  return *kAll;
}

size_t SettingIndex(std::string_view name) {
  const std::vector<Setting>& all = Settings();
  return std::find_if(all.begin(), all.end(), [&](const Setting& s) { return s.name == name; }) - all.begin();
}

}  // namespace ftc
