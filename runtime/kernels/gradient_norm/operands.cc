#include "runtime/kernels/gradient_norm/operands.h"

#include "fmt/format.h"
#include "runtime/base/flat_layout.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"

namespace ft {

absl::StatusOr<SumSquaresOperands> ReadSumSquares(const KernelOperands& operands) {
  const bool short_form = operands.in.size() == 2;
  FT_RETURN_IF_ERROR(CheckCounts(operands, short_form ? 2 : 3, 1));
  const Tensor factor = short_form ? Tensor{} : operands.in[2];
  const Tensor &gradient = operands.in[0], &acc = operands.in[1], &sum = operands.out[0];
  FT_RETURN_IF_ERROR(CheckFloat(gradient, "gradient"));
  FT_RETURN_IF_ERROR(CheckSize(sum, "sum", kAccumulatorWords, DType::kI64));
  if (acc.present()) FT_RETURN_IF_ERROR(CheckSize(acc, "acc", kAccumulatorWords, DType::kI64));
  if (factor.present()) FT_RETURN_IF_ERROR(CheckSize(factor, "factor", 1));
  if (gradient.flat_begin % kBlockElements != 0)
    return absl::InvalidArgumentError(fmt::format("a slice must begin at a multiple of {}", kBlockElements));
  return SumSquaresOperands{gradient, acc.as<int64_t>(), factor.as<float>(), sum.as<int64_t>()};
}

absl::StatusOr<ClipCoefficientOperands> ReadClipCoefficient(const KernelOperands& operands,
                                                            const KernelAttributes& attributes) {
  const bool short_form = operands.in.size() == 1;
  FT_RETURN_IF_ERROR(CheckCounts(operands, short_form ? 1 : 4, kClipCoefficientResults));
  const auto optional = [&](size_t index) { return short_form ? Tensor{} : operands.in[index]; };
  const Tensor loss = optional(1), scaler = optional(2), factor = optional(3);
  FT_RETURN_IF_ERROR(CheckSize(operands.in[0], "sum", kAccumulatorWords, DType::kI64));
  if (loss.present()) FT_RETURN_IF_ERROR(CheckSize(loss, "loss", 1));
  if (scaler.present()) FT_RETURN_IF_ERROR(CheckSize(scaler, "scaler", 3));
  if (factor.present()) FT_RETURN_IF_ERROR(CheckSize(factor, "factor", 1));
  FT_RETURN_IF_ERROR(CheckSize(operands.out[0], "norm", 1));
  const Tensor& coefficient = operands.out[kClipCoefficientResult];
  FT_RETURN_IF_ERROR(CheckSize(coefficient, "coefficient", 1));
  FT_ASSIGN_OR_RETURN(const double max_norm, FloatIn(attributes, "max_norm", 0.0));
  return ClipCoefficientOperands{operands.in[0].as<int64_t>(), loss.as<float>(), scaler.as<float>(),
                                 factor.as<float>(),           max_norm,         operands.out[0].as<float>(),
                                 coefficient.as<float>()};
}

}  // namespace ft
