#include "runtime/backends/cuda/device_code/fixed_point.h"
#include "runtime/backends/cuda/device_code/gpu.h"
#include "runtime/kernels/loss_scaling/cuda_device.h"

namespace ft::cuda {
namespace {

__global__ void ScaleOne(const float* scaler, double factor, float* result) {
  *result = static_cast<float>(static_cast<double>(*scaler) * factor);
}

// As torch.amp.GradScaler.update; with hysteresis h as DeepSpeed's DynamicLossScaler: the first h - 1 skipped
// steps since the scale grew leave it alone.
__global__ void UpdateOne(ScalerPolicy policy, const float* coefficient, const float* factor, float* scaler) {
  if (factor != nullptr && *factor != *factor) return;
  float &scale = scaler[0], &good_steps = scaler[1], &spared = scaler[2];
  if (*coefficient != *coefficient) {
    good_steps = 0.0f;
    if (spared + 1.0f < policy.hysteresis) {
      spared += 1.0f;
      return;
    }
    const double lower = static_cast<double>(scale) * policy.backoff_factor;
    scale = static_cast<float>(lower < policy.min_scale ? policy.min_scale : lower);
    return;
  }
  good_steps += 1.0f;
  if (good_steps < policy.growth_interval) return;
  good_steps = 0.0f;
  spared = 0.0f;
  const float grown = static_cast<float>(static_cast<double>(scale) * policy.growth_factor);
  if (IsFinite(grown)) scale = grown;
}

}  // namespace

int StoreLossScale(const float* scaler, double factor, float* result, StreamHandle stream) {
  return Launch(&ScaleOne, LaunchShape{}, stream, scaler, factor, result);
}

int UpdateScaler(const ScalerPolicy& policy, const float* coefficient, const float* factor, float* scaler,
                 StreamHandle stream) {
  return Launch(&UpdateOne, LaunchShape{}, stream, policy, coefficient, factor, scaler);
}

}  // namespace ft::cuda
