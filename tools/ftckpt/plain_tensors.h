// Safetensors files of anybody, read in pieces: not mapped, so that address space does not bound their size.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tools/ftckpt/tensor_side.h"

namespace ft::ckpt {

// A safetensors file, or an index ("*.json") with the files that it names beside it. Errors: those of
// SafetensorsReader::Open.
absl::StatusOr<std::unique_ptr<TensorSide>> OpenPlainTensors(const std::string& path);

}  // namespace ft::ckpt
