// What the kernels of matrix products take. Checked once, for all devices; errors are InvalidArgument.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/device/kernel.h"

namespace ft {

// [m, k] times [k, n].
struct ProductShape {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
};

// Of a and b, of one type that is computed with, into a result of any such type; the attributes say what is
// transposed. Bias, [n] of that type, and acc, which is the result, may be absent.
absl::StatusOr<ProductShape> CheckProduct(const KernelAttributes& attributes, const Tensor& a,
                                          const Tensor& b, const Tensor& bias, const Tensor& acc,
                                          const Tensor& result);

// What comes after a product, on its result x: it gives the result.
struct MatmulGeluOperands {
  Tensor a, b, bias, x, result;
  bool keeps_x;  // else x is the result
};
absl::StatusOr<MatmulGeluOperands> ReadMatmulGelu(const KernelOperands& operands);

// x, from forward, times the product, which is dx before.
struct MatmulGeluGradOperands {
  Tensor a, b, x, dx;
};
absl::StatusOr<MatmulGeluGradOperands> ReadMatmulGeluGrad(const KernelOperands& operands);

// A product, and beside it the sums of one of its operands over the rows.
struct MatmulBiasGradOperands {
  Tensor a, b, result, sums;
  bool of_a;  // else of b
  const Tensor& summed() const { return of_a ? a : b; }
};
absl::StatusOr<MatmulBiasGradOperands> ReadMatmulBiasGrad(const KernelOperands& operands,
                                                          const KernelAttributes& attributes);

}  // namespace ft
