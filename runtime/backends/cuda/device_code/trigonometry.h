// Sine and cosine on a quarter turn around 0, by the polynomials of the CPU's vector_math.h, so that both
// devices draw and rotate alike. cosf and sinf would bring a slow path for large angles, which we never have.
#pragma once

#include "runtime/backends/cuda/device_code/gpu.h"

namespace ft::cuda {

// Taylor polynomials on [-pi/4, pi/4], within 2 ulp of the largest value there.
__device__ __forceinline__ float SinReduced(float x) {
  const float square = x * x;
  float p = 2.7557319224e-6f;
  p = fmaf(p, square, -1.9841269841e-4f);
  p = fmaf(p, square, 8.3333333333e-3f);
  p = fmaf(p, square, -0.16666666667f);
  return fmaf(x * square, p, x);
}

__device__ __forceinline__ float CosReduced(float x) {
  const float square = x * x;
  float p = 2.4801587302e-5f;
  p = fmaf(p, square, -1.3888888889e-3f);
  p = fmaf(p, square, 4.1666666667e-2f);
  p = fmaf(p, square, -0.5f);
  return fmaf(p, square, 1.0f);
}

struct CosSin {
  float cosine, sine;
};

// Of quarter + rest quarter turns, quarter in 0 ... 3 and rest in [-1/2, 1/2].
__device__ __forceinline__ CosSin OfQuarterTurns(uint32_t quarter, float rest) {
  const float angle = rest * 1.5707963267948966f;
  const float s = SinReduced(angle), c = CosReduced(angle);
  const float cosine = (quarter & 1) != 0 ? s : c, sine = (quarter & 1) != 0 ? c : s;
  return {quarter == 1 || quarter == 2 ? -cosine : cosine, quarter >= 2 ? -sine : sine};
}

}  // namespace ft::cuda
