// Floats of 8 bits on the device (runtime/base/float8.h).
#pragma once

#include "runtime/backends/cuda/device_code/gpu.h"
#include "runtime/base/float8.h"

namespace ft::cuda {

struct ScalePair {
  float scale, inverse;
};
// Of numbers of which `greatest` is the largest magnitude, as bits of an f32.
template <Float8 kType>
__device__ __forceinline__ ScalePair ScaleFor(uint32_t greatest) {
  constexpr int kOfLargest = kFloat8[static_cast<int>(kType)].exponent;
  int exponent = 0;
  if (greatest != 0) {
    exponent = kOfLargest - (static_cast<int>(greatest >> 23) - 127) - ((greatest & 0x7FFFFF) > 0x600000);
    exponent = exponent < kFloat8MostScale ? exponent : kFloat8MostScale;
  }
  return {__uint_as_float(static_cast<uint32_t>(exponent + 127) << 23),
          __uint_as_float(static_cast<uint32_t>(127 - exponent) << 23)};
}

// Two numbers, scaled, rounded to the nearest; the first in the lower byte. NaN for what is not finite.
template <Float8 kType>
__device__ __forceinline__ uint32_t RoundPair(float first, float second) {
#if defined(__CUDACC__) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  // The instruction takes infinities for the largest number.
  const auto finite = [](float x) {
    const bool is = (__float_as_uint(x) & 0x7FFFFFFF) < kFloat8Infinity;
    return is ? x : __uint_as_float(0x7FC00000);
  };
  uint16_t pair;
  if constexpr (kType == Float8::kE4M3) {
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(finite(second)), "f"(finite(first)));
  } else {
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(finite(second)), "f"(finite(first)));
  }
  return pair;
#else
  constexpr int kMantissa = kFloat8[static_cast<int>(kType)].mantissa, kDropped = 23 - kMantissa;
  constexpr int kLeastExponent = kFloat8[static_cast<int>(kType)].least_exponent;
  constexpr uint32_t kLeast = static_cast<uint32_t>(kLeastExponent + 127) << 23;
  const auto round = [](float x) -> uint32_t {
    const uint32_t bits = __float_as_uint(x), magnitude = bits & 0x7FFFFFFF;
    if (magnitude >= kFloat8Infinity) return kFloat8NaN;
    const uint32_t binade = magnitude & 0x7F800000, sign = bits >> 24 & 0x80;
    // Floats near this are as far apart as numbers of the format near x: the addition rounds.
    const float shift =
        __uint_as_float((binade > kLeast ? binade : kLeast) + (static_cast<uint32_t>(kDropped) << 23));
    const uint32_t rounded = __float_as_uint(__fsub_rn(__fadd_rn(__uint_as_float(magnitude), shift), shift));
    if (rounded >= kLeast) return sign | (rounded - kLeast + (uint32_t{1} << 23)) >> kDropped;
    // Steps of the subnormals.
    constexpr uint32_t kStepsPerUnit = static_cast<uint32_t>(127 + kMantissa - kLeastExponent) << 23;
    const float steps = __fmul_rn(__uint_as_float(rounded), __uint_as_float(kStepsPerUnit));
    return sign | static_cast<uint32_t>(steps);
  };
  return round(first) | round(second) << 8;
#endif
}

}  // namespace ft::cuda
