#include "runtime/kernels/linear_cross_entropy/operands.h"

#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"

namespace ft {
namespace {

absl::StatusOr<LinearCrossEntropyOperands> ReadInputs(const Tensor& x, const Tensor& weight,
                                                      const Tensor& targets) {
  FT_RETURN_IF_ERROR(CheckFloat(x, "x"));
  FT_RETURN_IF_ERROR(CheckPresent(weight, "weight", x.dtype));
  if (weight.last() != x.last())
    return absl::InvalidArgumentError("x and weight must agree in the last dimension");
  FT_RETURN_IF_ERROR(CheckSize(targets, "targets", x.rows(), DType::kI32));
  return LinearCrossEntropyOperands{x, weight, targets.as<int32_t>()};
}

absl::Status AddLoss(const Tensor& loss, LinearCrossEntropyOperands& read) {
  read.loss = loss.as<float>();
  return CheckSize(loss, "loss", 1);
}

absl::Status AddGradients(const Tensor& acc, const Tensor& dx, const Tensor& dweight,
                          LinearCrossEntropyOperands& read) {
  FT_RETURN_IF_ERROR(CheckSameShape(dx, "dx", read.x));
  FT_RETURN_IF_ERROR(CheckFloat(dweight, "dweight"));
  Tensor like = read.weight;
  like.dtype = dweight.dtype;
  FT_RETURN_IF_ERROR(CheckSameShape(dweight, "dweight", like));
  if (acc.present()) FT_RETURN_IF_ERROR(CheckSameShape(acc, "acc", dweight));
  FT_RETURN_IF_ERROR(CheckAccumulator(acc, dweight));
  read.dx = dx;
  read.dweight = dweight;
  read.accumulate = acc.present();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LinearCrossEntropyOperands> ReadLinearCrossEntropy(const KernelOperands& operands) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 3, 1));
  FT_ASSIGN_OR_RETURN(LinearCrossEntropyOperands read,
                      ReadInputs(operands.in[0], operands.in[1], operands.in[2]));
  FT_RETURN_IF_ERROR(AddLoss(operands.out[0], read));
  return read;
}

absl::StatusOr<LinearCrossEntropyOperands> ReadLinearCrossEntropyGrad(const KernelOperands& operands) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 5, 2));
  FT_RETURN_IF_ERROR(CheckSize(operands.in[0], "dloss", 1));
  FT_ASSIGN_OR_RETURN(LinearCrossEntropyOperands read,
                      ReadInputs(operands.in[1], operands.in[2], operands.in[3]));
  FT_RETURN_IF_ERROR(AddGradients(operands.in[4], operands.out[0], operands.out[1], read));
  read.dloss = 1.0f;
  read.factor = operands.in[0].as<float>();
  return read;
}

absl::StatusOr<LinearCrossEntropyOperands> ReadLinearCrossEntropyLossGrad(
    const KernelOperands& operands, const KernelAttributes& attributes) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 5, 3));
  FT_ASSIGN_OR_RETURN(LinearCrossEntropyOperands read,
                      ReadInputs(operands.in[0], operands.in[1], operands.in[2]));
  FT_RETURN_IF_ERROR(AddLoss(operands.out[0], read));
  FT_RETURN_IF_ERROR(AddGradients(operands.in[3], operands.out[1], operands.out[2], read));
  FT_ASSIGN_OR_RETURN(const double dloss, FloatIn(attributes, "dloss"));
  if (operands.in[4].present()) FT_RETURN_IF_ERROR(CheckSize(operands.in[4], "dloss_scale", 1));
  read.dloss = static_cast<float>(dloss);
  read.factor = operands.in[4].as<float>();
  return read;
}

}  // namespace ft
