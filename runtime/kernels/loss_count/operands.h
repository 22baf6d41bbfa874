// What loss_count takes: read and checked once, for all devices; errors are InvalidArgument.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/device/kernel.h"

namespace ft {

struct LossCountOperands {
  const float* loss;
  Tensor targets;  // i32
  float* sum;      // {loss * n, n}
};
absl::StatusOr<LossCountOperands> ReadLossCount(const KernelOperands& operands);

}  // namespace ft
