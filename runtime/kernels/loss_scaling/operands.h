// What the kernels of loss scaling take. The state is f32[3]: the scale, the good steps since it last changed
// (or since a step was skipped), and the skipped steps since it last grew for which it did not back off. Each
// is read and checked once, for all devices; errors are InvalidArgument.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/device/kernel.h"

namespace ft {

struct LossScaleOperands {
  const float* scaler;
  double factor;
  float* result;
};
absl::StatusOr<LossScaleOperands> ReadLossScale(const KernelOperands& operands,
                                                const KernelAttributes& attributes);

struct UpdateScalerOperands {
  const float* coefficient;
  const float* factor;  // of what is counted, or nullptr
  float* scaler;
  double growth_factor, backoff_factor, min_scale;
  int64_t growth_interval, hysteresis;  // f32 counts so far
  bool dynamic;                         // else the scale stays
};
absl::StatusOr<UpdateScalerOperands> ReadUpdateScaler(const KernelOperands& operands,
                                                      const KernelAttributes& attributes);

}  // namespace ft
