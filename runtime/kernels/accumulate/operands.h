// What the kernels of sums over micro-steps take. Each is read and checked once, for all devices; errors are
// InvalidArgument.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/device/kernel.h"

namespace ft {

// As many elements each, all i64 or each of a type that is computed with. The state is an input, too: x,
// state -> state, or result and state.
struct AccumulateOperands {
  Tensor x;  // absent where the state has all
  Tensor state;
  Tensor result;  // of accumulated, else absent; may be x
};
absl::StatusOr<AccumulateOperands> ReadAccumulate(const KernelOperands& operands);
absl::StatusOr<AccumulateOperands> ReadAccumulated(const KernelOperands& operands);

}  // namespace ft
