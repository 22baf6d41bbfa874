// What the kernels of linear_cross_entropy take. Each is read and checked once, for all devices; errors are
// InvalidArgument.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/device/kernel.h"

namespace ft {

struct LinearCrossEntropyOperands {
  Tensor x;                // [rows, width], of any type that is computed with
  Tensor weight;           // [vocabulary, width], of the type of x
  const int32_t* targets;  // [rows]; rows with a negative one are left out
  float* loss = nullptr;   // nullptr for none
  // Of gradients; dx is absent without them.
  Tensor dx = {};                 // as x
  Tensor dweight = {};            // of any type that is computed with
  bool accumulate = false;        // into dweight
  float dloss = 0;                // the upstream gradient, times
  const float* factor = nullptr;  // this, where it is not nullptr
};
absl::StatusOr<LinearCrossEntropyOperands> ReadLinearCrossEntropy(const KernelOperands& operands);
absl::StatusOr<LinearCrossEntropyOperands> ReadLinearCrossEntropyGrad(const KernelOperands& operands);
absl::StatusOr<LinearCrossEntropyOperands> ReadLinearCrossEntropyLossGrad(const KernelOperands& operands,
                                                                          const KernelAttributes& attributes);

}  // namespace ft
