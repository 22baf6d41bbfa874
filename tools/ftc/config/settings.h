// The table of settings, runtime/base/settings.def, as ftc reads it: one row drives the key of train.yaml,
// the flag of ftc compile, --print-config and docs/train-yaml.md. Nothing else knows a setting's spelling.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/ftc/config/convert.h"
#include "tools/ftc/config/values.h"

namespace ftc {

// Another key of train.yaml for a setting, as FSDP, DeepSpeed or Hugging Face spell it. One key may stand in
// several rows.
struct Alias {
  std::string key;  // "fsdp.fsdp_sharding_strategy"
  Converter converter = SameValue();
};

struct Setting : ft::SettingTraits {
  std::string name;   // key of train.yaml; the flag has - for _
  std::string group;  // of --help and the documentation
  std::string placeholder;
  Value value;
  std::string help;
  std::vector<Alias> aliases;
};

const std::vector<Setting>& Settings();

// Index in Settings(); the name must be one of them.
size_t SettingIndex(std::string_view name);

}  // namespace ftc
