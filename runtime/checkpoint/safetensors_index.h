// The index of a checkpoint that is sharded over several safetensors files.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace ft {

// Parses "*.safetensors.index.json": (tensor, file name) pairs of its "weight_map", in the order of the text.
// `file` is for messages. InvalidArgument: not the JSON that is asked for, a duplicate tensor, a file name
// with a folder in it.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ParseSafetensorsIndex(
    std::string_view json, const std::string& file);

}  // namespace ft
