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
  const int32_t bits = static_cast<int32_t>(std::bit_cast<uint32_t>(x) - 0x3f3504f3u);  // sqrt(1/2)
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

// ln(x) for any x: -infinity for 0, NaN below.
FT_INLINE float LogOfAny(float x) {
  const bool subnormal = x < 0x1p-126f;
  const float y = Log(subnormal ? x * 0x1p23f : x) - (subnormal ? 15.9423847198486328f : 0.0f);  // 23 ln 2
  const float special = x > 0 ? x : x == 0 ? -__builtin_inff() : __builtin_nanf("");
  return x > 0 && x <= 0x1.fffffep127f ? y : special;
}

// Within 2 ulp: an odd polynomial below 0.625 (Cephes), 1 - 2 / (exp(2 |x|) + 1) above.
FT_INLINE float Tanh(float x) {
  const float size = __builtin_fabsf(x), square = x * x;
  float p = -5.70498872745e-3f;
  p = Fma(p, square, 2.06390887954e-2f);
  p = Fma(p, square, -5.37397155531e-2f);
  p = Fma(p, square, 1.33314422036e-1f);
  p = Fma(p, square, -3.33332819422e-1f);
  const float small = Fma(p * square, x, x);
  const float large = __builtin_copysignf(1.0f - 2.0f / (Exp(size + size) + 1.0f), x);
  return size < 0.625f ? small : large;
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

// The error function, within 3 ulp: x P(x^2) below 1, P interpolated at Chebyshev's nodes (relative error
// 4e-11), 1 - 2 Phi(-sqrt(2) |x|) above.
FT_INLINE float Erf(float x) {
  const float size = __builtin_fabsf(x), square = x * x;
  float p = -9.667044e-06f;
  p = Fma(p, square, 0.00011265959f);
  p = Fma(p, square, -0.00084840803f);
  p = Fma(p, square, 0.0052210316f);
  p = Fma(p, square, -0.02686543f);
  p = Fma(p, square, 0.11283782f);
  p = Fma(p, square, -0.37612638f);
  p = Fma(p, square, 1.1283792f);
  const float large = __builtin_copysignf(1.0f - 2.0f * NormalCdf(-1.41421356237f * size), x);
  return size < 1.0f ? p * x : large;
}

// The sine of x + quarters pi / 2. x less a multiple of pi / 2, in f64: absolute error below 2e-7 for |x| <
// 2^24, NaN from 2^30 on.
FT_INLINE float SinOfQuarters(float x, int32_t quarters) {
  const double turns = static_cast<double>(x) * 0.63661977236758134;  // 2 / pi
  const bool usable = __builtin_fabsf(x) < 0x1p30f;
  const double nearest = __builtin_rint(usable ? turns : 0.0);
  // pi / 2, its first 33 bits and the rest.
  const double rest = (static_cast<double>(x) - nearest * 0x1.921fb544p+0) - nearest * 0x1.0b4611a626331p-34;
  const int32_t quarter = static_cast<int32_t>(nearest) + quarters;
  const float r = static_cast<float>(rest), sine = SinReduced(r), cosine = CosReduced(r);
  const float value = (quarter & 1) != 0 ? cosine : sine;
  return usable ? ((quarter & 2) != 0 ? -value : value) : __builtin_nanf("");
}
FT_INLINE float Sin(float x) { return SinOfQuarters(x, 0); }
FT_INLINE float Cos(float x) { return SinOfQuarters(x, 1); }

// ln(x) in f64 for normal positive x, within 4e-16 of max(1, |ln x|): 2 artanh((m - 1) / (m + 1)) of the
// mantissa.
FT_INLINE double LogF64(double x) {
  const int64_t bits = static_cast<int64_t>(std::bit_cast<uint64_t>(x) - 0x3FE6A09E667F3BCDu);  // sqrt(1/2)
  const double exponent = static_cast<double>(bits >> 52);
  const double m = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD);
  const double s = (m - 1.0) / (m + 1.0), square = s * s;
  double p = 1.0 / 21;
  for (int k = 19; k >= 1; k -= 2) p = p * square + 1.0 / k;
  return exponent * 0.69314718055994531 + 2.0 * s * p;
}

// exp(x) in f64 for |x| < 700, within 1e-15 of it.
FT_INLINE double ExpF64(double x) {
  const double n = __builtin_rint(x * 1.4426950408889634);
  const double r = (x - n * 0x1.62e42fee00000p-1) - n * 0x1.a39ef35793c76p-33;
  double p = 1.0;
  for (int k = 13; k >= 1; --k) p = p * r / k + 1.0;
  return p * std::bit_cast<double>((static_cast<int64_t>(n) + 1023) << 52);
}

// x to a power, within 1 ulp: products for integers up to 16 (3 ulp), exp(power ln x) in f64 for others. NaN
// for x < 0 and a power that is no integer.
FT_INLINE float Pow(float x, double power) {
  const double size = __builtin_fabs(power);
  const bool whole = __builtin_rint(power) == power;
  if (whole && size <= 16) {
    float product = 1.0f;
    for (int i = 0; i < static_cast<int>(size); ++i) product *= x;
    return power < 0 ? 1.0f / product : product;
  }
  const float base = __builtin_fabsf(x);
  if (x != x || (x < 0 && !whole)) return __builtin_nanf("");
  const bool odd = whole && size < 0x1p31 && (static_cast<int64_t>(size) & 1) != 0;
  const float sign = __builtin_signbit(x) && odd ? -1.0f : 1.0f;
  if (base == 0 || base > 0x1.fffffep127f)
    return sign * ((base == 0) == (power > 0) ? 0.0f : __builtin_inff());
  const double exponent = power * LogF64(base);
  if (exponent > 89 || exponent < -104) return sign * (exponent > 0 ? __builtin_inff() : 0.0f);
  return sign * static_cast<float>(ExpF64(exponent));
}

}  // namespace ft::cpu::FT_ISA
