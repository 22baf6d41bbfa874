// loss_scale and update_scaler.
#include <cmath>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/kernels/loss_scaling/operands.h"

namespace ft::cpu {
namespace {

KernelOr MakeLossScale(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const LossScaleOperands read, ReadLossScale(context.operands, context.attributes));
  return MakeKernel([read] { *read.result = static_cast<float>(double{*read.scaler} * read.factor); });
}

// As torch.amp.GradScaler.update; with hysteresis h as DeepSpeed's DynamicLossScaler: the first h - 1 skipped
// steps since the scale grew leave it alone.
void Update(const UpdateScalerOperands& policy, bool skipped) {
  float &scale = policy.scaler[0], &good_steps = policy.scaler[1], &spared = policy.scaler[2];
  if (skipped) {
    good_steps = 0.0f;
    if (spared + 1.0f < static_cast<float>(policy.hysteresis)) {
      spared += 1.0f;
      return;
    }
    const double lower = double{scale} * policy.backoff_factor;
    scale = static_cast<float>(std::max(lower, policy.min_scale));
    return;
  }
  good_steps += 1.0f;
  if (good_steps < static_cast<float>(policy.growth_interval)) return;
  good_steps = 0.0f;
  spared = 0.0f;
  const float grown = static_cast<float>(double{scale} * policy.growth_factor);
  if (std::isfinite(grown)) scale = grown;
}

KernelOr MakeUpdateScaler(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const UpdateScalerOperands read,
                      ReadUpdateScaler(context.operands, context.attributes));
  return MakeKernel([read] {
    const bool counted = read.factor == nullptr || !std::isnan(*read.factor);
    if (read.dynamic && counted) Update(read, std::isnan(*read.coefficient));
  });
}

}  // namespace

void RegisterLossScaling(KernelRegistry& registry, Isa isa) {
  Add<MakeLossScale>(registry, "loss_scale", isa);
  Add<MakeUpdateScaler>(registry, "update_scaler", isa);
}

}  // namespace ft::cpu
