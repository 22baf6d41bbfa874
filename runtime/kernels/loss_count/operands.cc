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

}  // namespace ft
