// loss_count, count_targets and counted_mean.
#include <limits>

#include "fmt/format.h"
#include "runtime/backends/cuda/register.h"
#include "runtime/kernels/loss_count/cuda_device.h"
#include "runtime/kernels/loss_count/operands.h"

namespace ft::cuda {
namespace {

// They are counted in 32 bits.
absl::StatusOr<int> Targets(const Tensor& targets) {
  constexpr int64_t kLimit = std::numeric_limits<int32_t>::max() - 65536;
  if (targets.elements() > kLimit)
    return absl::InvalidArgumentError(fmt::format("{} targets are too many", targets.elements()));
  return static_cast<int>(targets.elements());
}

KernelOr MakeLossCount(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const LossCountOperands read, ReadLossCount(context.operands));
  FT_ASSIGN_OR_RETURN(const int targets, Targets(read.targets));
  return MakeKernel([read, targets](StreamHandle stream) {
    return LossCount(read.loss, read.targets.as<int32_t>(), targets, read.sum, stream);
  });
}

KernelOr MakeCountTargets(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const CountTargetsOperands read,
                      ReadCountTargets(context.operands, context.attributes));
  FT_ASSIGN_OR_RETURN(const int targets, Targets(read.targets));
  return MakeKernel([read, targets](StreamHandle stream) {
    return CountTargets(read.targets.as<int32_t>(), targets, static_cast<int>(read.all), read.count,
                        read.share, stream);
  });
}

KernelOr MakeCountedMean(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const CountedMeanOperands read, ReadCountedMean(context.operands));
  return MakeKernel([read](StreamHandle stream) {
    return CountedMean(read.count, read.loss, read.mean, read.factor, stream);
  });
}

}  // namespace

void RegisterLossCount(KernelTable& table) {
  table.Add("loss_count", MakeLossCount);
  table.Add("count_targets", MakeCountTargets);
  table.Add("counted_mean", MakeCountedMean);
}

}  // namespace ft::cuda
