// What the kernels of what a loss counts take. Each is read and checked once, for all devices; errors are
// InvalidArgument.
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

struct CountTargetsOperands {
  Tensor targets;  // i32
  int64_t all;     // of them that may count
  int64_t* count;  // {n, all}
  float* share;    // n / all
};
absl::StatusOr<CountTargetsOperands> ReadCountTargets(const KernelOperands& operands,
                                                      const KernelAttributes& attributes);

struct CountedMeanOperands {
  const int64_t* count;  // {n, all}
  const float* loss;
  float* mean;    // loss * factor
  float* factor;  // all / n
};
absl::StatusOr<CountedMeanOperands> ReadCountedMean(const KernelOperands& operands);

}  // namespace ft
