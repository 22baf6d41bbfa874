// The user's changes to a preset, and the checks that every family shares.
#pragma once

#include <string>

#include "models/base/model_spec.h"

namespace ft::models {

// Changes `config`. Returns one line that says which options do not fit, or an empty string.
std::string applyOverrides(const ModelSpec &spec, const Overrides &overrides, ModelConfig &config);

} // namespace ft::models
