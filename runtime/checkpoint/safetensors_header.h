// The header of a safetensors file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/safetensors_dtype.h"

namespace ft {

inline constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;  // as the reference implementation has it

struct HeaderTensor {
  std::string name;
  SafetensorsDType dtype = SafetensorsDType::kF32;
  std::vector<int64_t> shape;
  int64_t num_elements = 0;
  uint64_t begin = 0, end = 0;  // bytes within the data area
};

// Parses and checks the JSON text of a header whose data area has `data_bytes` bytes; `file` is for messages.
// The tensors come sorted by where their data lies, and cover the data area without overlap or hole.
// InvalidArgument: see SafetensorsReader::Open.
absl::StatusOr<std::vector<HeaderTensor>> ParseSafetensorsHeader(std::string_view json, uint64_t data_bytes,
                                                                 const std::string& file);

// "[2, 3]".
std::string ShapeText(const std::vector<int64_t>& shape);

}  // namespace ft
