// Which keys of a config.json mean what, family by family, as transformers' config classes and modules have
// it: a file each in families/, which the build collects.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "runtime/checkpoint/config_reader.h"

namespace ft {

// What transformers calls a model_type.
struct ConfigFamily {
  std::string_view model_type;
  // Transformers' classes for models that are built from it. Of several `write` says the one that is meant.
  std::vector<std::string_view> architectures;
  // Reads every key that changes what the model computes, absent ones with the default of the config class.
  void (*read)(ConfigReader& config);
  // Writes them, for transformers 4 and 5.
  void (*write)(const ModelFacts& facts, nlohmann::json& config);
  // Parts of the names of tensors in files, and what stands for each in the names of transformers 5's
  // modules.
  std::vector<std::pair<std::string_view, std::string_view>> module_names = {};
};

absl::Span<const ConfigFamily> ConfigFamilies();
const ConfigFamily* FindConfigFamily(std::string_view model_type);  // null when it is not one of them

// What transformers 5 calls a parameter, or a module, that files call `name`.
std::string NameInModules(std::string_view model_type, std::string name);

}  // namespace ft
