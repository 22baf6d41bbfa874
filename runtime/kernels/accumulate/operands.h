// What the kernels of sums over micro-steps take. Each is read and checked once, for all devices; errors are
// InvalidArgument.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/device/kernel.h"

namespace ft {

struct AccumulateOperands {
  Tensor x;      // of any type that is computed with, or i64
  Tensor state;  // as x
  void* result;  // of accumulated, as x; else nullptr
};
absl::StatusOr<AccumulateOperands> ReadAccumulate(const KernelOperands& operands);
absl::StatusOr<AccumulateOperands> ReadAccumulated(const KernelOperands& operands);

}  // namespace ft
