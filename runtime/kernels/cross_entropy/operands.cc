#include "runtime/kernels/cross_entropy/operands.h"

#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"

namespace ft {
namespace {

absl::StatusOr<CrossEntropyOperands> ReadLogits(const Tensor& logits, const Tensor& targets) {
  FT_RETURN_IF_ERROR(CheckFloat(logits, "logits"));
  FT_RETURN_IF_ERROR(CheckSize(targets, "targets", logits.rows(), DType::kI32));
  return CrossEntropyOperands{logits, targets.as<int32_t>()};
}

}  // namespace

absl::StatusOr<CrossEntropyOperands> ReadCrossEntropy(const KernelOperands& operands) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 2, 1));
  FT_ASSIGN_OR_RETURN(CrossEntropyOperands read, ReadLogits(operands.in[0], operands.in[1]));
  FT_RETURN_IF_ERROR(CheckSize(operands.out[0], "loss", 1));
  read.loss = operands.out[0].as<float>();
  return read;
}

absl::StatusOr<CrossEntropyOperands> ReadCrossEntropyGrad(const KernelOperands& operands) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 3, 1));
  FT_RETURN_IF_ERROR(CheckSize(operands.in[0], "dloss", 1));
  FT_ASSIGN_OR_RETURN(CrossEntropyOperands read, ReadLogits(operands.in[1], operands.in[2]));
  FT_RETURN_IF_ERROR(CheckSameShape(operands.out[0], "dlogits", read.logits));
  read.dloss = operands.in[0].as<float>();
  read.dlogits = operands.out[0];
  return read;
}

absl::StatusOr<LossCountOperands> ReadLossCount(const KernelOperands& operands) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 2, 1));
  FT_RETURN_IF_ERROR(CheckSize(operands.in[0], "loss", 1));
  FT_RETURN_IF_ERROR(CheckPresent(operands.in[1], "targets", DType::kI32));
  FT_RETURN_IF_ERROR(CheckSize(operands.out[0], "sum", 2));
  return LossCountOperands{operands.in[0].as<float>(), operands.in[1], operands.out[0].as<float>()};
}

}  // namespace ft
