// The indices that Hugging Face's loaders ask for beside weights in several files.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/checkpoint/state/file_layout.h"

namespace ft {

// "model.safetensors.index.json", and the same of the optimizer, with their contents: for a layout of type
// full, where there are several files of the kind.
std::vector<std::pair<std::string, std::string>> TensorIndices(const FileLayout& layout);

// The contents of such a file: the file of each tensor, and the bytes of all.
std::string TensorIndex(const std::vector<std::pair<std::string, std::string>>& places, uint64_t bytes);

}  // namespace ft
