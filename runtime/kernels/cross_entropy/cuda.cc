// cross_entropy and cross_entropy_grad of logits that are given, and loss_count.
#include <limits>

#include "fmt/format.h"
#include "runtime/backends/cuda/register.h"
#include "runtime/base/cuda_workspace.h"
#include "runtime/kernels/cross_entropy/cuda_device.h"
#include "runtime/kernels/cross_entropy/operands.h"

namespace ft::cuda {
namespace {

// Rows and columns are counted in 32 bits, rounded up to blocks.
constexpr int64_t kLimit = std::numeric_limits<int32_t>::max() - 65536;

absl::Status CheckLimits(const Tensor& logits) {
  if (logits.rows() <= kLimit && logits.last() <= kLimit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("logits [{}, {}] are too large", logits.rows(), logits.last()));
}

// Without losses and gradient.
absl::StatusOr<RowLossArgs> RowsOf(const CrossEntropyOperands& read) {
  const Tensor& logits = read.logits;
  FT_RETURN_IF_ERROR(CheckLimits(logits));
  return RowLossArgs{logits.data,
                     logits.dtype,
                     static_cast<int>(logits.rows()),
                     static_cast<int>(logits.last()),
                     logits.last(),
                     read.targets,
                     nullptr,
                     nullptr,
                     nullptr};
}

KernelOr MakeCrossEntropy(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const CrossEntropyOperands read, ReadCrossEntropy(context.operands));
  FT_ASSIGN_OR_RETURN(RowLossArgs args, RowsOf(read));
  const int64_t bytes = cuda_workspace::CrossEntropy(args.rows);
  FT_RETURN_IF_ERROR(CheckWorkspace(context.operands, bytes));
  char* workspace = context.operands.workspace.as<char>();
  args.losses = reinterpret_cast<float*>(workspace);
  LossScale* scale = reinterpret_cast<LossScale*>(workspace + bytes - cuda_workspace::kLossScale);
  const LossScaleArgs scale_args = {args.targets, args.rows, 0.0f, nullptr, false, scale};
  return MakeKernel([=, result = read.loss](StreamHandle stream) {
    if (const int error = FindLossScale(scale_args, stream); error != 0) return error;
    if (const int error = RowLosses(args, stream); error != 0) return error;
    return MeanLoss(args.losses, args.rows, scale, result, stream);
  });
}

KernelOr MakeCrossEntropyGrad(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const CrossEntropyOperands read, ReadCrossEntropyGrad(context.operands));
  FT_ASSIGN_OR_RETURN(RowLossArgs args, RowsOf(read));
  FT_RETURN_IF_ERROR(CheckWorkspace(context.operands, cuda_workspace::CrossEntropyGrad()));
  LossScale* scale = context.operands.workspace.as<LossScale>();
  args.gradient = read.dlogits.data;
  args.scale = scale;
  const LossScaleArgs scale_args = {args.targets, args.rows, 1.0f, read.dloss, false, scale};
  return MakeKernel([=](StreamHandle stream) {
    if (const int error = FindLossScale(scale_args, stream); error != 0) return error;
    return RowLosses(args, stream);
  });
}

KernelOr MakeLossCount(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const LossCountOperands read, ReadLossCount(context.operands));
  if (read.targets.elements() > kLimit)
    return absl::InvalidArgumentError(fmt::format("{} targets are too many", read.targets.elements()));
  return MakeKernel([read](StreamHandle stream) {
    return LossCount(read.loss, read.targets.as<int32_t>(), static_cast<int>(read.targets.elements()),
                     read.sum, stream);
  });
}

}  // namespace

void RegisterCrossEntropy(KernelTable& table) {
  table.Add("cross_entropy", MakeCrossEntropy);
  table.Add("cross_entropy_grad", MakeCrossEntropyGrad);
  table.Add("loss_count", MakeLossCount);
}

}  // namespace ft::cuda
