// The header of a safetensors file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
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

using HeaderMetadata = std::vector<std::pair<std::string, std::string>>;

// The JSON text of the header that a file begins with; `file` is for messages. Errors: DataLoss for a file
// that is cut off in it, InvalidArgument for a header that is too long to be one.
absl::StatusOr<std::string_view> SafetensorsHeaderText(absl::Span<const uint8_t> bytes,
                                                       const std::string& file);

// Parses and checks the JSON text of a header whose data area has `data_bytes` bytes; `file` is for messages.
// The tensors come sorted by where their data lies, and cover the data area without overlap or hole. What
// __metadata__ says comes in the order of the file, unless null. InvalidArgument: see
// SafetensorsReader::Open.
absl::StatusOr<std::vector<HeaderTensor>> ParseSafetensorsHeader(std::string_view json, uint64_t data_bytes,
                                                                 const std::string& file,
                                                                 HeaderMetadata* metadata = nullptr);

// "[2, 3]".
std::string ShapeText(const std::vector<int64_t>& shape);

}  // namespace ft
