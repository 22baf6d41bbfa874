// Elementary functions in f32 without branches, so that loops over them become vector code.
//
// Included only by files compiled once per instruction set, inside their namespace (FT_ISA). Contraction into
// FMA is off there: where FMA is wanted, Fma() says so, and a vector loop, its remainder and its slices all
// give the same bits.
#pragma once

#include <bit>
#include <cstdint>

#if defined(FT_EMULATE_BF16_DOT)
#define FT_INLINE static inline  // vector.h: nobody waits for an emulation, but for its compiler
#else
#define FT_INLINE static inline __attribute__((always_inline))
#endif

namespace ft::cpu::FT_ISA {

// a * b + c, rounded once where the instruction set has FMA, twice elsewhere.
FT_INLINE float Fma(float a, float b, float c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

// exp(x), within 2 ulp for x in [-87.33, 88.72]; 0 below, infinity above, NaN for NaN. Range reduction by ln
// 2 in two parts (W. Cody, W. Waite, "Software manual for the elementary functions", 1980), Taylor polynomial
// of degree 7 on [-ln 2 / 2, ln 2 / 2].
FT_INLINE float Exp(float x) {
  constexpr float kShift = 0x1.8p23f;  // adding it leaves the rounded integer in the low mantissa bits
  const float clamped = x < -87.33f ? -87.33f : (x > 88.72f ? 88.72f : x);
  const float shifted = Fma(clamped, 0x1.715476p+0f, kShift);
  const float n = shifted - kShift;
  float r = Fma(n, -0x1.62e4p-1f, clamped);
  r = Fma(n, -1.428606820309417e-6f, r);
  float p = 0x1.a01a02p-13f;  // 1/5040
  p = Fma(p, r, 0x1.6c16c2p-10f);
  p = Fma(p, r, 0x1.111112p-7f);
  p = Fma(p, r, 0x1.555556p-5f);
  p = Fma(p, r, 0x1.555556p-3f);
  p = Fma(p, r, 0.5f);
  p = Fma(p, r, 1.0f);
  p = Fma(p, r, 1.0f);
  // 2^n in two factors, since n = 128 has no exponent of its own.
  const int32_t exponent = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kShift);
  const int32_t half = exponent >> 1;
  const float first = std::bit_cast<float>((half + 127) << 23);
  const float second = std::bit_cast<float>((exponent - half + 127) << 23);
  const float y = p * first * second;
  return x < -87.33f ? 0.0f : (x > 88.72f ? __builtin_inff() : y);
}

// exp(x) for x <= 0 as a softmax needs it: 0 below -60. Beside a sum of at least 1, 9e-27 is nothing, while
// products with denormal numbers, which smaller values would lead to, take a hundred times as long.
FT_INLINE float SoftmaxExp(float x) { return x < -60.0f ? 0.0f : Exp(x); }

// 1 / (1 + exp(-x)), within 4 ulp.
FT_INLINE float Sigmoid(float x) { return 1.0f / (1.0f + Exp(-x)); }

// ln(x) for normal positive x, within 2 ulp. x = 2^e m with m in [sqrt(1/2), sqrt(2)); ln(1 + f) = f - f^2 /
// 2 + f^3 P(f), P the interpolation of degree 8 at Chebyshev's nodes (relative error 7e-8 of P, hence below
// 1e-8 of the result).
FT_INLINE float Log(float x) {
  const int32_t bits = std::bit_cast<int32_t>(x) - 0x3f3504f3;  // sqrt(1/2)
  const float exponent = static_cast<float>(bits >> 23);
  const float f = std::bit_cast<float>((bits & 0x007fffff) + 0x3f3504f3) - 1.0f;
  float p = 0.06971611471f;
  p = Fma(p, f, -0.1147973385f);
  p = Fma(p, f, 0.1168541992f);
  p = Fma(p, f, -0.1242568733f);
  p = Fma(p, f, 0.1424905765f);
  p = Fma(p, f, -0.1666780232f);
  p = Fma(p, f, 0.2000071575f);
  p = Fma(p, f, -0.2499999696f);
  p = Fma(p, f, 0.3333333118f);
  const float square = f * f;
  const float low = Fma(exponent, 1.428606820309417e-6f, Fma(p * f, square, -0.5f * square));
  return Fma(exponent, 0x1.62e4p-1f, f + low);
}

// Taylor polynomials on [-pi/4, pi/4], within 2 ulp of the largest value there.
FT_INLINE float SinReduced(float x) {
  const float square = x * x;
  float p = 2.7557319224e-6f;
  p = Fma(p, square, -1.9841269841e-4f);
  p = Fma(p, square, 8.3333333333e-3f);
  p = Fma(p, square, -0.16666666667f);
  return Fma(x * square, p, x);
}

FT_INLINE float CosReduced(float x) {
  const float square = x * x;
  float p = 2.4801587302e-5f;
  p = Fma(p, square, -1.3888888889e-3f);
  p = Fma(p, square, 4.1666666667e-2f);
  p = Fma(p, square, -0.5f);
  return Fma(p, square, 1.0f);
}

// Distribution function of the standard normal, erfc(-x / sqrt(2)) / 2: absolute error below 2e-7. With z =
// |x| / sqrt(2) and t = 1 / (1 + 0.4 z): erfc(z) = t P(t) exp(-z^2), P interpolated at Chebyshev's nodes for
// z up to 9.6 (relative error 2e-8).
FT_INLINE float NormalCdf(float x) {
  const float z = __builtin_fabsf(x) * 0.70710678118654752f;
  const float t = 1.0f / Fma(0.4f, z, 1.0f);
  float p = -0.03415652278f;
  p = Fma(p, t, 0.2224943816f);
  p = Fma(p, t, -0.555611827f);
  p = Fma(p, t, 0.6220585055f);
  p = Fma(p, t, -0.3454069048f);
  p = Fma(p, t, 0.3042328417f);
  p = Fma(p, t, 0.1187818744f);
  p = Fma(p, t, 0.2172038742f);
  p = Fma(p, t, 0.2246833808f);
  p = Fma(p, t, 0.2257203975f);
  const float tail = 0.5f * t * p * Exp(-0.5f * x * x);
  return x < 0.0f ? tail : 1.0f - tail;
}

}  // namespace ft::cpu::FT_ISA
