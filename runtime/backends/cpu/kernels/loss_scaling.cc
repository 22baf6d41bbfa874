// loss_scale and update_scaler. The state of loss scaling is f32[3]: the scale, the good steps since it last
// changed (or since a step was skipped), and the skipped steps since it last grew for which it did not back
// off.
#include <cmath>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"

namespace ft::cpu {
namespace {

constexpr int64_t kStateElements = 3;
constexpr int64_t kMaxGrowthInterval = int64_t{1} << 24;  // f32 counts so far

KernelOr MakeLossScale(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  FT_RETURN_IF_ERROR(CheckSize(context.in(0), "scaler", kStateElements));
  FT_RETURN_IF_ERROR(CheckSize(context.out(0), "result", 1));
  FT_ASSIGN_OR_RETURN(const double factor, FloatIn(context.attributes, "factor"));
  return MakeKernel([=, scaler = context.in(0).as<float>(), result = context.out(0).as<float>()] {
    *result = static_cast<float>(double{*scaler} * factor);
  });
}

struct Policy {
  double growth_factor, backoff_factor, min_scale;
  int64_t growth_interval, hysteresis;
};

absl::StatusOr<Policy> ReadPolicy(const KernelAttributes& attributes) {
  Policy policy;
  FT_ASSIGN_OR_RETURN(policy.growth_factor, FloatIn(attributes, "growth_factor"));
  FT_ASSIGN_OR_RETURN(policy.backoff_factor, FloatIn(attributes, "backoff_factor"));
  FT_ASSIGN_OR_RETURN(policy.min_scale, FloatIn(attributes, "min_scale", 0.0));
  FT_ASSIGN_OR_RETURN(policy.growth_interval, IntIn(attributes, "growth_interval", 1, kMaxGrowthInterval));
  FT_ASSIGN_OR_RETURN(policy.hysteresis, IntIn(attributes, "hysteresis", 1, kMaxGrowthInterval));
  return policy;
}

// As torch.amp.GradScaler.update; with hysteresis h as DeepSpeed's DynamicLossScaler: the first h - 1 skipped
// steps since the scale grew leave it alone.
void Update(const Policy& policy, bool skipped, float* scaler) {
  float &scale = scaler[0], &good_steps = scaler[1], &spared = scaler[2];
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
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  FT_RETURN_IF_ERROR(CheckSize(context.in(0), "coefficient", 1));
  FT_RETURN_IF_ERROR(CheckSize(context.out(0), "scaler", kStateElements));
  FT_ASSIGN_OR_RETURN(const Policy policy, ReadPolicy(context.attributes));
  FT_ASSIGN_OR_RETURN(const bool dynamic, Flag(context.attributes, "dynamic"));
  return MakeKernel([=, coefficient = context.in(0).as<float>(), scaler = context.out(0).as<float>()] {
    if (dynamic) Update(policy, std::isnan(*coefficient), scaler);
  });
}

}  // namespace

void RegisterLossScaling(KernelRegistry& registry, Isa isa) {
  Add<MakeLossScale>(registry, "loss_scale", isa);
  Add<MakeUpdateScaler>(registry, "update_scaler", isa);
}

}  // namespace ft::cpu
