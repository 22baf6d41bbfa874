// loss_count.
#include <algorithm>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/kernels/loss_count/operands.h"

namespace ft::cpu {
namespace {

KernelOr MakeLossCount(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const LossCountOperands read, ReadLossCount(context.operands));
  return MakeKernel([read] {
    const int32_t* targets = read.targets.as<int32_t>();
    const auto counted = static_cast<double>(std::count_if(targets, targets + read.targets.elements(),
                                                           [](int32_t target) { return target >= 0; }));
    read.sum[0] = static_cast<float>(double{*read.loss} * counted);
    read.sum[1] = static_cast<float>(counted);
  });
}

}  // namespace

void RegisterLossCount(KernelRegistry& registry, Isa isa) { Add<MakeLossCount>(registry, "loss_count", isa); }

}  // namespace ft::cpu
