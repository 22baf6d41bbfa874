// What the kernels that are made of one matrix product share.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/backends/cuda/kernel_base.h"

namespace ft::cuda {

struct MatmulOperands {
  ProductSpec spec;
  Tensor a, b, bias, result;
  char* workspace = nullptr;  // aligned as the library wants it
  int64_t workspace_bytes = 0;

  ProductOperands addresses() const { return {a.data, b.data, result.data, workspace, bias.data}; }
};

// A product, and the workspace that is left beside it. Bias and acc may be absent. Errors: InvalidArgument
// for what does not fit together.
absl::StatusOr<MatmulOperands> ReadProduct(const KernelContext& context, const Tensor& a, const Tensor& b,
                                           const Tensor& bias, const Tensor& acc, const Tensor& result);

KernelOr MakeProduct(const KernelContext& context, const MatmulOperands& operands);

// A matmul that rounds its operands to 8 bits.
KernelOr MakeFloat8Matmul(const KernelContext& context);

}  // namespace ft::cuda
