// cross_entropy and cross_entropy_grad of logits that are given, and loss_count.
#include "runtime/backends/cuda/routines/loss.h"

#include <limits>

#include "fmt/format.h"
#include "runtime/backends/cuda/kernels/linear_cross_entropy.h"
#include "runtime/backends/cuda/register.h"
#include "runtime/base/cuda_workspace.h"

namespace ft::cuda {
namespace {

// Rows and columns are counted in 32 bits, rounded up to blocks.
constexpr int64_t kLimit = std::numeric_limits<int32_t>::max() - 65536;

absl::Status CheckLimits(const Tensor& logits) {
  if (logits.rows() <= kLimit && logits.last() <= kLimit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("logits [{}, {}] are too large", logits.rows(), logits.last()));
}

// Rows of `logits` with their targets; without losses and gradient.
absl::StatusOr<RowLossArgs> CheckLogits(const Tensor& logits, const Tensor& targets) {
  FT_RETURN_IF_ERROR(CheckFloat(logits, "logits"));
  FT_RETURN_IF_ERROR(CheckSize(targets, "targets", logits.rows(), DType::kI32));
  FT_RETURN_IF_ERROR(CheckLimits(logits));
  return RowLossArgs{logits.data,
                     logits.dtype,
                     static_cast<int>(logits.rows()),
                     static_cast<int>(logits.last()),
                     logits.last(),
                     targets.as<int32_t>(),
                     nullptr,
                     nullptr,
                     nullptr};
}

KernelOr MakeCrossEntropy(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 2, 1));
  FT_ASSIGN_OR_RETURN(RowLossArgs args, CheckLogits(context.in(0), context.in(1)));
  FT_RETURN_IF_ERROR(CheckSize(context.out(0), "loss", 1));
  const int64_t bytes = cuda_workspace::CrossEntropy(args.rows);
  FT_RETURN_IF_ERROR(CheckWorkspace(context.operands, bytes));
  char* workspace = context.operands.workspace.as<char>();
  args.losses = reinterpret_cast<float*>(workspace);
  LossScale* scale = reinterpret_cast<LossScale*>(workspace + bytes - cuda_workspace::kLossScale);
  const LossScaleArgs scale_args = {args.targets, args.rows, 0.0f, nullptr, false, scale};
  return MakeKernel([=, result = context.out(0).as<float>()](StreamHandle stream) {
    if (const int error = FindLossScale(scale_args, stream); error != 0) return error;
    if (const int error = RowLosses(args, stream); error != 0) return error;
    return MeanLoss(args.losses, args.rows, scale, result, stream);
  });
}

KernelOr MakeCrossEntropyGrad(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 3, 1));
  FT_RETURN_IF_ERROR(CheckSize(context.in(0), "dloss", 1));
  FT_ASSIGN_OR_RETURN(RowLossArgs args, CheckLogits(context.in(1), context.in(2)));
  FT_RETURN_IF_ERROR(CheckSameShape(context.out(0), "dlogits", context.in(1)));
  FT_RETURN_IF_ERROR(CheckWorkspace(context.operands, cuda_workspace::CrossEntropyGrad()));
  LossScale* scale = context.operands.workspace.as<LossScale>();
  args.gradient = context.out(0).data;
  args.scale = scale;
  const LossScaleArgs scale_args = {args.targets, args.rows, 1.0f, context.in(0).as<float>(), false, scale};
  return MakeKernel([=](StreamHandle stream) {
    if (const int error = FindLossScale(scale_args, stream); error != 0) return error;
    return RowLosses(args, stream);
  });
}

KernelOr MakeLossCount(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 2, 1));
  const Tensor &loss = context.in(0), &targets = context.in(1), &sum = context.out(0);
  FT_RETURN_IF_ERROR(CheckSize(loss, "loss", 1));
  FT_RETURN_IF_ERROR(CheckPresent(targets, "targets", DType::kI32));
  FT_RETURN_IF_ERROR(CheckSize(sum, "sum", 2));
  if (targets.elements() > kLimit)
    return absl::InvalidArgumentError(fmt::format("{} targets are too many", targets.elements()));
  return MakeKernel(
      [mean = loss.as<float>(), ids = targets.as<int32_t>(), rows = static_cast<int>(targets.elements()),
       result = sum.as<float>()](StreamHandle stream) { return LossCount(mean, ids, rows, result, stream); });
}

}  // namespace

void RegisterLoss(KernelTable& table) {
  table.Add("cross_entropy", MakeCrossEntropy);
  table.Add("cross_entropy_grad", MakeCrossEntropyGrad);
  table.Add("loss_count", MakeLossCount);
  table.Add("linear_cross_entropy", MakeLinearCrossEntropy);
  table.Add("linear_cross_entropy_grad", MakeLinearCrossEntropyGrad);
  table.Add("linear_cross_entropy_loss_grad", MakeLinearCrossEntropyLossGrad);
}

}  // namespace ft::cuda
