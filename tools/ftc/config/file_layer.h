// What a train.yaml gives.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/ftc/config/given.h"
#include "tools/ftc/config/train_yaml.h"

namespace ftc {

struct FileLayer {
  std::vector<Given> given;
  std::vector<std::string> remarks;  // one line each, for standard error
};

// Finds each key in the tables of settings, aliases and foreign keys and converts its value. `flags` have
// been given besides and win over the file where a conversion depends on another setting. InvalidArgument,
// "train.yaml:12:5: ...": an unknown key, a value that its setting refuses.
absl::StatusOr<FileLayer> ReadFileLayer(const TrainYaml& file, const std::vector<Given>& flags);

// All keys that are known, as the documentation spells them.
std::vector<std::string> KnownKeys();

}  // namespace ftc
