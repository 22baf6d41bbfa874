#include "runtime/kernels/matmul/cpu_float8_loops.h"

#include <bit>

namespace ft::cpu::FT_ISA {
namespace {

constexpr uint16_t kInfinity = 0x7F80;

uint16_t Magnitude(uint16_t x) {
  const auto magnitude = static_cast<uint16_t>(x & 0x7FFF);
  return magnitude < kInfinity ? magnitude : uint16_t{0};
}

// As RoundToFloat8 of runtime/base/float8.h, which may not be instantiated here
// (runtime/backends/cpu/loops.h); scaled back, of bits that bf16 has.
template <Float8 kType>
uint16_t Rounded(uint16_t x, float scale, float inverse) {
  constexpr Float8Format kFormat = kFloat8[static_cast<int>(kType)];
  constexpr uint32_t kLeast = static_cast<uint32_t>(kFormat.least_exponent + 127) << 23;
  constexpr uint32_t kShift = (static_cast<uint32_t>(23 - kFormat.mantissa) << 23) | 0x400000;
  const float scaled = std::bit_cast<float>(static_cast<uint32_t>(x) << 16) * scale;
  const uint32_t binade = std::bit_cast<uint32_t>(scaled) & 0x7F800000;
  const auto shift = std::bit_cast<float>((binade > kLeast ? binade : kLeast) + kShift);
  const float rounded = ((scaled + shift) - shift) * inverse;
  const bool is_finite = (x & 0x7FFF) < kInfinity;
  return is_finite ? static_cast<uint16_t>(std::bit_cast<uint32_t>(rounded) >> 16) : uint16_t{0x7FC0};
}

uint16_t Greatest(const uint16_t* x, int64_t n) {
  uint16_t greatest = 0;
#pragma omp simd reduction(max : greatest)
  for (int64_t i = 0; i < n; ++i) {
    const uint16_t magnitude = Magnitude(x[i]);
    greatest = greatest < magnitude ? magnitude : greatest;
  }
  return greatest;
}

void GreatestOfEach(const uint16_t* x, int64_t n, uint16_t* greatest) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const uint16_t magnitude = Magnitude(x[i]);
    greatest[i] = greatest[i] < magnitude ? magnitude : greatest[i];
  }
}

template <Float8 kType>
void RoundAll(const uint16_t* x, int64_t n, float scale, float inverse, uint16_t* result) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) result[i] = Rounded<kType>(x[i], scale, inverse);
}

template <Float8 kType>
void RoundEachOf(const uint16_t* x, int64_t n, const float* scale, const float* inverse, uint16_t* result) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) result[i] = Rounded<kType>(x[i], scale[i], inverse[i]);
}

void Round(const uint16_t* x, int64_t n, Float8 type, float scale, float inverse, uint16_t* result) {
  type == Float8::kE4M3 ? RoundAll<Float8::kE4M3>(x, n, scale, inverse, result)
                        : RoundAll<Float8::kE5M2>(x, n, scale, inverse, result);
}

void RoundEach(const uint16_t* x, int64_t n, Float8 type, const float* scale, const float* inverse,
               uint16_t* result) {
  type == Float8::kE4M3 ? RoundEachOf<Float8::kE4M3>(x, n, scale, inverse, result)
                        : RoundEachOf<Float8::kE5M2>(x, n, scale, inverse, result);
}

}  // namespace

extern const Float8Loops kFloat8Rounding;
const Float8Loops kFloat8Rounding = {Greatest, GreatestOfEach, Round, RoundEach};

}  // namespace ft::cpu::FT_ISA
