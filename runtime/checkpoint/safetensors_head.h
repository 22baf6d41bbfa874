// What a safetensors file begins with: the length of its header, and the header.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/checkpoint/safetensors_dtype.h"

namespace ft {

// A tensor to be written.
struct TensorSpec {
  std::string name;  // unique, valid UTF-8, not "__metadata__"
  SafetensorsDType dtype;
  std::vector<int64_t> shape;  // empty: a scalar

  uint64_t bytes() const;  // of a tensor that passed CheckTensor
};

// InvalidArgument: an empty or reserved name, or one that is not UTF-8, which JSON cannot hold.
absl::Status CheckTensorName(std::string_view name);

// The same, and InvalidArgument for a negative dimension or a size that overflows.
absl::Status CheckTensor(const TensorSpec& tensor);

// For tensors that passed, with data in this order from the end of the head on, which is a multiple of 8
// bytes (padded with spaces). List wide dtypes before narrow ones and every tensor is aligned to its element.
// The metadata is {"format": "pt"}, which Hugging Face's loader asks for.
std::string SafetensorsHead(absl::Span<const TensorSpec> tensors);

}  // namespace ft
