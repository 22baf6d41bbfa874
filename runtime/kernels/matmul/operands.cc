#include "runtime/kernels/matmul/operands.h"

#include "runtime/base/checked.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"

namespace ft {

absl::StatusOr<ProductShape> CheckProduct(const KernelAttributes& attributes, const Tensor& a,
                                          const Tensor& b, const Tensor& bias, const Tensor& acc,
                                          const Tensor& result) {
  FT_RETURN_IF_ERROR(CheckFloat(a, "a"));
  ProductShape shape;
  FT_ASSIGN_OR_RETURN(shape.transpose_a, Flag(attributes, "transpose_a"));
  FT_ASSIGN_OR_RETURN(shape.transpose_b, Flag(attributes, "transpose_b"));
  shape.m = shape.transpose_a ? a.last() : a.rows();
  shape.k = shape.transpose_a ? a.rows() : a.last();
  shape.n = shape.transpose_b ? b.rows() : b.last();
  FT_RETURN_IF_ERROR(CheckSize(b, "b", CheckedMul(shape.k, shape.n), a.dtype));
  if ((shape.transpose_b ? b.last() : b.rows()) != shape.k)
    return absl::InvalidArgumentError("a and b must agree in the dimension that is summed over");
  FT_RETURN_IF_ERROR(CheckFloatSize(result, "result", CheckedMul(shape.m, shape.n)));
  if (bias.present()) FT_RETURN_IF_ERROR(CheckSize(bias, "bias", shape.n, a.dtype));
  if (acc.present()) FT_RETURN_IF_ERROR(CheckSameShape(acc, "acc", result));
  FT_RETURN_IF_ERROR(CheckAccumulator(acc, result));
  return shape;
}

absl::StatusOr<MatmulGeluOperands> ReadMatmulGelu(const KernelOperands& operands) {
  const bool keeps = operands.out.size() == 2;
  FT_RETURN_IF_ERROR(CheckCounts(operands, 3, keeps ? 2 : 1));
  const MatmulGeluOperands read{operands.in[0],  operands.in[1], operands.in[2], operands.out[keeps ? 1 : 0],
                                operands.out[0], keeps};
  FT_RETURN_IF_ERROR(CheckSameShape(read.x, "x", read.result));
  return read;
}

absl::StatusOr<MatmulGeluGradOperands> ReadMatmulGeluGrad(const KernelOperands& operands) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 3, 1));
  const MatmulGeluGradOperands read{operands.in[0], operands.in[1], operands.in[2], operands.out[0]};
  FT_RETURN_IF_ERROR(CheckSameShape(read.x, "x", read.dx));
  return read;
}

absl::StatusOr<MatmulBiasGradOperands> ReadMatmulBiasGrad(const KernelOperands& operands,
                                                          const KernelAttributes& attributes) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 2, 2));
  FT_ASSIGN_OR_RETURN(const bool transpose_a, Flag(attributes, "transpose_a"));
  if (!transpose_a) return absl::InvalidArgumentError("a product that sums over rows has transpose_a");
  FT_ASSIGN_OR_RETURN(const bool of_a, Flag(attributes, "of_a"));
  const MatmulBiasGradOperands read{operands.in[0], operands.in[1], operands.out[0], operands.out[1], of_a};
  FT_RETURN_IF_ERROR(CheckSize(read.sums, "sums", read.summed().last(), read.result.dtype));
  return read;
}

}  // namespace ft
