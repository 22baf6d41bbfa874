#include "runtime/kernels/accumulate/operands.h"

#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"

namespace ft {
namespace {

// As many elements as the state, of its kind.
absl::Status CheckLikeState(const Tensor& tensor, std::string_view name, const Tensor& state) {
  return state.dtype == DType::kI64 ? CheckSize(tensor, name, state.elements(), DType::kI64)
                                    : CheckFloatSize(tensor, name, state.elements());
}

// What is read of the state is what is written.
absl::Status CheckState(const Tensor& state, const Tensor& before) {
  FT_RETURN_IF_ERROR(state.dtype == DType::kI64 ? CheckPresent(state, "state", DType::kI64)
                                                : CheckFloat(state, "state"));
  if (before.data == state.data && before.dtype == state.dtype && before.elements() == state.elements())
    return absl::OkStatus();
  return absl::InvalidArgumentError("the state that is read must be the one that is written");
}

}  // namespace

absl::StatusOr<AccumulateOperands> ReadAccumulate(const KernelOperands& operands) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 2, 1));
  const AccumulateOperands read = {operands.in[0], operands.out[0], Tensor()};
  FT_RETURN_IF_ERROR(CheckState(read.state, operands.in[1]));
  FT_RETURN_IF_ERROR(CheckLikeState(read.x, "x", read.state));
  return read;
}

absl::StatusOr<AccumulateOperands> ReadAccumulated(const KernelOperands& operands) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 2, 2));
  const AccumulateOperands read = {operands.in[0], operands.out[1], operands.out[0]};
  FT_RETURN_IF_ERROR(CheckState(read.state, operands.in[1]));
  if (read.x.present()) FT_RETURN_IF_ERROR(CheckLikeState(read.x, "x", read.state));
  FT_RETURN_IF_ERROR(CheckLikeState(read.result, "result", read.state));
  return read;
}

}  // namespace ft
