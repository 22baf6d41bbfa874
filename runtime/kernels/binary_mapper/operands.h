// What the kernels of binary_mapper take. Each is read and checked once, for all devices; errors are
// InvalidArgument.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/device/kernel.h"

namespace ft {

struct BinaryMapperOperands {
  Tensor logits;  // [..., bits]
  Tensor table;   // [2^bits, width], of the type of the logits
  Tensor index;   // [...], i32; of the gradient dy, [..., width]
  Tensor result;  // [..., width]; of the gradient as the logits
};
absl::StatusOr<BinaryMapperOperands> ReadBinaryMapper(const KernelOperands& operands);
absl::StatusOr<BinaryMapperOperands> ReadBinaryMapperGrad(const KernelOperands& operands);

}  // namespace ft
