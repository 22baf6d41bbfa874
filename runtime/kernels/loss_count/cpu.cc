// loss_count, count_targets and counted_mean.
#include <algorithm>
#include <limits>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/kernels/loss_count/operands.h"

namespace ft::cpu {
namespace {

int64_t Counted(const Tensor& targets) {
  const int32_t* begin = targets.as<int32_t>();
  return std::count_if(begin, begin + targets.elements(), [](int32_t target) { return target >= 0; });
}

KernelOr MakeLossCount(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const LossCountOperands read, ReadLossCount(context.operands));
  return MakeKernel([read] {
    const auto counted = static_cast<double>(Counted(read.targets));
    read.sum[0] = static_cast<float>(double{*read.loss} * counted);
    read.sum[1] = static_cast<float>(counted);
  });
}

KernelOr MakeCountTargets(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const CountTargetsOperands read,
                      ReadCountTargets(context.operands, context.attributes));
  return MakeKernel([read] {
    read.count[0] = Counted(read.targets);
    read.count[1] = read.all;
    *read.share = static_cast<float>(read.count[0]) / static_cast<float>(read.count[1]);
  });
}

KernelOr MakeCountedMean(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const CountedMeanOperands read, ReadCountedMean(context.operands));
  return MakeKernel([read] {
    const double counted = static_cast<double>(read.count[0]), all = static_cast<double>(read.count[1]);
    *read.factor = counted > 0 ? static_cast<float>(all / counted) : std::numeric_limits<float>::quiet_NaN();
    *read.mean = *read.loss * *read.factor;
  });
}

}  // namespace

void RegisterLossCount(KernelRegistry& registry, Isa isa) {
  Add<MakeLossCount>(registry, "loss_count", isa);
  Add<MakeCountTargets>(registry, "count_targets", isa);
  Add<MakeCountedMean>(registry, "counted_mean", isa);
}

}  // namespace ft::cpu
