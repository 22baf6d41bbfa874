#include "runtime/kernels/loss_count/operands.h"

#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"

namespace ft {

absl::StatusOr<LossCountOperands> ReadLossCount(const KernelOperands& operands) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 2, 1));
  FT_RETURN_IF_ERROR(CheckSize(operands.in[0], "loss", 1));
  FT_RETURN_IF_ERROR(CheckPresent(operands.in[1], "targets", DType::kI32));
  FT_RETURN_IF_ERROR(CheckSize(operands.out[0], "sum", 2));
  return LossCountOperands{operands.in[0].as<float>(), operands.in[1], operands.out[0].as<float>()};
}

absl::StatusOr<CountTargetsOperands> ReadCountTargets(const KernelOperands& operands,
                                                      const KernelAttributes& attributes) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 1, 2));
  FT_RETURN_IF_ERROR(CheckPresent(operands.in[0], "targets", DType::kI32));
  FT_RETURN_IF_ERROR(CheckSize(operands.out[0], "count", 2, DType::kI64));
  FT_RETURN_IF_ERROR(CheckSize(operands.out[1], "share", 1));
  FT_ASSIGN_OR_RETURN(const int64_t all, IntIn(attributes, "of", 1, operands.in[0].elements()));
  return CountTargetsOperands{operands.in[0], all, operands.out[0].as<int64_t>(),
                              operands.out[1].as<float>()};
}

absl::StatusOr<CountedMeanOperands> ReadCountedMean(const KernelOperands& operands) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 2, 2));
  FT_RETURN_IF_ERROR(CheckSize(operands.in[0], "count", 2, DType::kI64));
  FT_RETURN_IF_ERROR(CheckSize(operands.in[1], "loss", 1));
  FT_RETURN_IF_ERROR(CheckSize(operands.out[0], "mean", 1));
  FT_RETURN_IF_ERROR(CheckSize(operands.out[1], "factor", 1));
  return CountedMeanOperands{operands.in[0].as<int64_t>(), operands.in[1].as<float>(),
                             operands.out[0].as<float>(), operands.out[1].as<float>()};
}

}  // namespace ft
