// A config.json: bounded, parsed, and as the facts of a model.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/model_facts.h"

namespace ft {

// Errors: the system's; InvalidArgument names the file and what is wrong with it.
absl::StatusOr<nlohmann::json> ReadConfigObject(const std::string& path);

// Names of the families whose keys are known: "bert, gemma, ...".
std::string KnownFamilies();

// The facts of the model that transformers would build of the file, every key that changes its result
// understood. InvalidArgument has one line with all that is not: a model_type that is not known, keys,
// values, a class (architectures) with another head.
absl::StatusOr<ModelFacts> ReadConfigFile(const std::string& path);

}  // namespace ft
