// Floats of 8 bits, which operands of matrix products can be rounded to (OCP 8-bit Floating Point
// Specification 1.0): on a scale that is a power of two, so that nothing but the rounding changes a number.
//
// Numbers that share a scale: all of an operand (tensorwise); or, of an operand that the product reads as
// rows of k elements, 128 elements of a row, or 128 of 128 rows of a weight (blockwise).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ft {

// The numbers are indices of kFloat8.
enum class Float8 : uint8_t { kE4M3 = 0, kE5M2 = 1 };

struct Float8Format {
  std::string_view name;
  int mantissa;        // bits
  int least_exponent;  // of normal numbers; subnormals are as far apart as these
  int exponent;        // of the largest number, 1.75 times 2 to this
};
inline constexpr Float8Format kFloat8[] = {{"e4m3", 3, -6, 8}, {"e5m2", 2, -14, 15}};
constexpr const Float8Format& FormatOf(Float8 type) { return kFloat8[static_cast<int>(type)]; }

constexpr std::optional<Float8> Float8Named(std::string_view name) {
  for (const Float8 type : {Float8::kE4M3, Float8::kE5M2})
    if (FormatOf(type).name == name) return type;
  return std::nullopt;
}

// Along k, and of rows of a weight.
inline constexpr int64_t kFloat8Block = 128;

inline constexpr int kFloat8MostScale = 100;             // a scale is at most 2 to this
inline constexpr uint32_t kFloat8Infinity = 0x7F800000;  // as bits of an f32
inline constexpr uint8_t kFloat8NaN = 0x7F;              // in both formats

// The scale is 2 to this: the largest of which `greatest` times the scale is a number of the format. That is
// the bits of the largest magnitude, as f32, of those that are finite. Within what bf16 holds exactly when it
// is scaled back.
constexpr int Float8ScaleExponent(uint32_t greatest, const Float8Format& format) {
  if (greatest == 0) return 0;
  const int exponent = static_cast<int>(greatest >> 23) - 127;
  const bool is_above = (greatest & 0x7FFFFF) > 0x600000;  // 1.75
  return std::min(kFloat8MostScale, format.exponent - exponent - (is_above ? 1 : 0));
}
// 2 to the exponent, which is that of a normal number.
constexpr float PowerOfTwo(int exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

// The nearest number of the format, ties to even, of x that is scaled: no greater than the largest. NaN for
// what is not finite.
constexpr float RoundToFloat8(float x, const Float8Format& format) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t magnitude = bits & 0x7FFFFFFF, sign = bits & 0x80000000;
  const uint32_t least = static_cast<uint32_t>(format.least_exponent + 127);
  const uint32_t exponent = std::max(magnitude >> 23, least);
  // Floats near this are as far apart as numbers of the format near x: the addition rounds.
  const auto shift = std::bit_cast<float>((exponent + 23 - static_cast<uint32_t>(format.mantissa)) << 23);
  const float rounded = (std::bit_cast<float>(magnitude) + shift) - shift;
  return std::bit_cast<float>(magnitude < kFloat8Infinity ? std::bit_cast<uint32_t>(rounded) | sign
                                                          : uint32_t{0x7FC00000});
}

// The bits of a number of the format, or of NaN.
constexpr uint8_t Float8Bits(float rounded, const Float8Format& format) {
  const auto bits = std::bit_cast<uint32_t>(rounded);
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude >= kFloat8Infinity) return kFloat8NaN;
  const auto sign = static_cast<uint8_t>(bits >> 24 & 0x80);
  const auto least = static_cast<uint32_t>(format.least_exponent + 127) << 23;
  // Subnormals are counted in steps, of which the first normal number has 2 to the bits of the mantissa.
  const uint32_t steps = magnitude < least
                             ? static_cast<uint32_t>(std::bit_cast<float>(magnitude) *
                                                     PowerOfTwo(format.mantissa - format.least_exponent))
                             : (magnitude - least + (uint32_t{1} << 23)) >> (23 - format.mantissa);
  return static_cast<uint8_t>(sign | steps);
}

}  // namespace ft
