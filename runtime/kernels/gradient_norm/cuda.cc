// sum_squares and clip_coefficient.
#include "runtime/backends/cuda/register.h"
#include "runtime/kernels/gradient_norm/cuda_device.h"
#include "runtime/kernels/gradient_norm/operands.h"

namespace ft::cuda {
namespace {

KernelOr MakeSumSquares(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const SumSquaresOperands read, ReadSumSquares(context.operands));
  const SumSquaresArgs args = {read.gradient.data, read.gradient.dtype, read.gradient.elements(),
                               read.earlier,       read.factor,         read.sum};
  return MakeKernel([args](StreamHandle stream) { return SumSquares(args, stream); });
}

KernelOr MakeClipCoefficient(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const ClipCoefficientOperands read,
                      ReadClipCoefficient(context.operands, context.attributes));
  const ClipCoefficientArgs args = {read.sum,      read.loss, read.scaler,     read.factor,
                                    read.max_norm, read.norm, read.coefficient};
  return MakeKernel([args](StreamHandle stream) { return ClipCoefficient(args, stream); });
}

}  // namespace

void RegisterGradientNorm(KernelTable& table) {
  table.Add(kClipCoefficientKernel, MakeClipCoefficient);
  table.Add(kSumSquaresKernel, MakeSumSquares);
}

}  // namespace ft::cuda
