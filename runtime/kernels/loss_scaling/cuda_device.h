// Dynamic loss scaling. Its state is f32[3]: the scale, the good steps since it last changed (or since a step
// was skipped), and the skipped steps since it last grew for which it did not back off.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/device_code/launch.h"

namespace ft::cuda {

// *result = scaler[0] * factor.
int StoreLossScale(const float* scaler, double factor, float* result, StreamHandle stream);

struct ScalerPolicy {
  double growth_factor, backoff_factor, min_scale;
  float growth_interval, hysteresis;  // steps
};

// One step, skipped where the coefficient is NaN; none where the factor, which may be null, is NaN.
int UpdateScaler(const ScalerPolicy& policy, const float* coefficient, const float* factor, float* scaler,
                 StreamHandle stream);

}  // namespace ft::cuda
