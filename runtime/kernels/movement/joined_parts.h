// A whole and its parts along one dimension: what split and concat copy.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/device/kernel.h"

namespace ft {

// Whole and parts as matrices: rows are the elements of the dimensions before the one that is cut.
struct JoinedParts {
  int64_t rows = 1;
  int64_t row_bytes = 0;  // of the whole
  struct Part {
    char* data;
    int64_t offset;  // in a row of the whole, in bytes
    int64_t bytes;   // of a row of the part
  };
  std::vector<Part> parts;
};

// Along the dimension of the attribute `axis`; without one, or with -1, along the last.
absl::StatusOr<JoinedParts> CheckParts(const Tensor& whole, const std::vector<Tensor>& parts,
                                       const KernelAttributes& attributes);

}  // namespace ft
