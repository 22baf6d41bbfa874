#include "runtime/kernels/accumulate/operands.h"

#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"

namespace ft {
namespace {

absl::Status CheckSummand(const Tensor& x) {
  return x.dtype == DType::kI64 ? CheckPresent(x, "x", DType::kI64) : CheckFloat(x, "x");
}

}  // namespace

absl::StatusOr<AccumulateOperands> ReadAccumulate(const KernelOperands& operands) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 1, 1));
  const Tensor &x = operands.in[0], &state = operands.out[0];
  FT_RETURN_IF_ERROR(CheckSummand(x));
  FT_RETURN_IF_ERROR(CheckSize(state, "state", x.elements(), x.dtype));
  return AccumulateOperands{x, state, nullptr};
}

absl::StatusOr<AccumulateOperands> ReadAccumulated(const KernelOperands& operands) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 1, 2));
  const Tensor &x = operands.in[0], &result = operands.out[0], &state = operands.out[1];
  FT_RETURN_IF_ERROR(CheckSummand(x));
  FT_RETURN_IF_ERROR(CheckSize(result, "result", x.elements(), x.dtype));
  FT_RETURN_IF_ERROR(CheckSize(state, "state", x.elements(), x.dtype));
  return AccumulateOperands{x, state, result.data};
}

}  // namespace ft
