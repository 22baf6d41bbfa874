// What the kernels of losses of logits take. Each is read and checked once, for all devices; errors are
// InvalidArgument.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/device/kernel.h"

namespace ft {

struct CrossEntropyOperands {
  Tensor logits;           // [rows, columns], of any type that is computed with
  const int32_t* targets;  // [rows]; rows with a negative one are left out
  float* loss = nullptr;
  const float* dloss = nullptr;  // of the gradient, as the next
  Tensor dlogits = {};           // as the logits
};
absl::StatusOr<CrossEntropyOperands> ReadCrossEntropy(const KernelOperands& operands);
absl::StatusOr<CrossEntropyOperands> ReadCrossEntropyGrad(const KernelOperands& operands);

struct LossCountOperands {
  const float* loss;
  Tensor targets;  // i32
  float* sum;      // {loss * n, n}
};
absl::StatusOr<LossCountOperands> ReadLossCount(const KernelOperands& operands);

}  // namespace ft
