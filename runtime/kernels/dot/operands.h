// Matrix products side by side.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/device/kernel.h"

namespace ft {

// r[i] = op(a[i]) op(b[i]) for each of `batch` matrices, row-major and dense: op(a) is m x k, op(b) is k x n.
struct BatchedProduct {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transpose_a = false;  // a[i] is k x m
  bool transpose_b = false;  // b[i] is n x k
};

// Operands a, b and the result, of equal leading dimensions; a and b of one float type, the result of any.
absl::StatusOr<BatchedProduct> CheckBatchedProduct(const KernelOperands& operands,
                                                   const KernelAttributes& attributes);

}  // namespace ft
