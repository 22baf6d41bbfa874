// 32-bit floats as 16-bit ones, rounded to nearest, ties to even.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace ft {

// The upper half of a float's bits. A NaN stays one: its lowest kept bit is set.
inline uint16_t RoundToBF16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

// IEEE binary16: from 65520 on infinity, below 2^-14 subnormal.
inline uint16_t RoundToF16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7E00 | (bits >> 13 & 0x1FF));
  if (magnitude >= 65520.0f) return static_cast<uint16_t>(sign | 0x7C00);
  if (magnitude < 0x1p-14f) {
    // In [0.5, 0.5 + 2^-14] neighbouring floats are 2^-24 apart, as subnormal halves are: the addition
    // rounds.
    const uint32_t steps = std::bit_cast<uint32_t>(magnitude + 0.5f) - std::bit_cast<uint32_t>(0.5f);
    return static_cast<uint16_t>(sign | steps);
  }
  const uint32_t rounded = (bits & 0x7FFFFFFF) + 0xFFF + (bits >> 13 & 1);
  return static_cast<uint16_t>(sign | ((rounded >> 13) - ((127 - 15) << 10)));
}

// The float that bfloat16 bits stand for; exact.
inline float BF16ToFloat(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// The float that binary16 bits stand for; exact.
inline float F16ToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16, exponent = bits >> 10 & 0x1F,
                 fraction = bits & 0x3FF;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | fraction << 13);
  if (exponent == 0) {  // zero and subnormals: fraction x 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}

}  // namespace ft
