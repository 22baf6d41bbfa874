// The table of settings: one row drives the key of train.yaml, the flag of ftc compile, --print-config and
// docs/train-yaml.md. Nothing else knows a setting's spelling.
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

struct Setting {
  std::string name;   // key of train.yaml; the flag has - for _
  std::string group;  // of --help and the documentation
  std::string placeholder;
  Value value;
  std::string help;
  std::vector<Alias> aliases = {};
  // Set when a list may be written in train.yaml: what its items, joined by commas, are preceded by.
  std::optional<std::string> list = {};
  // Settings that this one sets unless they are given themselves; it is nothing by itself.
  std::vector<std::string> stands_for = {};
  // Several keys of one file add up rather than contradict each other.
  bool adds_up = false;
  // Its flag may stand without a value, which is "true".
  bool is_switch = false;
  // Said when it is given: it is kept but read by nothing yet.
  std::string no_effect = {};
};

const std::vector<Setting>& Settings();

// Index in Settings(); the name must be one of them.
size_t SettingIndex(std::string_view name);

// "param_dtype" -> "param-dtype"
std::string FlagName(std::string_view setting);

}  // namespace ftc
