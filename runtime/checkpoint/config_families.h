// Which keys of a config.json mean what, family by family, as transformers' config classes and modules have
// it; and of the free_transformer, which is ours alone.
#pragma once

#include <string_view>

#include "absl/types/span.h"
#include "runtime/checkpoint/config_reader.h"

namespace ft {

// What transformers calls a model_type.
struct ConfigFamily {
  std::string_view model_type;
  // Reads every key that changes what the model computes, absent ones with the default of the config class.
  void (*read)(ConfigReader& config);
};

absl::Span<const ConfigFamily> ConfigFamilies();
const ConfigFamily* FindConfigFamily(std::string_view model_type);  // null when it is not one of them

}  // namespace ft
