// The file that --config names, and the one that it names in turn.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "tools/ftc/config/train_yaml.h"

namespace ftc {

// Whether a key is the name of a DeepSpeed file: deepspeed_config_file of Accelerate, deepspeed of Hugging
// Face's training arguments.
bool NamesFile(const YamlEntry& entry);

// The entries of `path` and after them those of the DeepSpeed file that it names, unless its distributed_type
// is another. That name is relative to the folder of `path`, or else to the working directory. Errors: those
// of ReadTrainYaml.
absl::StatusOr<TrainYaml> ReadConfigFiles(const std::string& path);

}  // namespace ftc
