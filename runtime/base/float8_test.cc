#include "runtime/base/float8.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/base/round_float.h"

namespace ft {
namespace {

// The value of a number by its definition; NaN where it has none.
double ValueOf(Float8 type, int bits) {
  const int mantissa = type == Float8::kE4M3 ? 3 : 2, bias = type == Float8::kE4M3 ? 7 : 15;
  const int exponent = (bits & 0x7F) >> mantissa, fraction = bits & ((1 << mantissa) - 1);
  const bool has_none = type == Float8::kE4M3 ? (bits & 0x7F) == 0x7F : exponent == 31;  // and infinities
  if (has_none) return std::numeric_limits<double>::quiet_NaN();
  const double value = exponent == 0 ? std::ldexp(fraction, 1 - bias - mantissa)
                                     : std::ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
  return bits & 0x80 ? -value : value;
}

double LargestOf(Float8 type) { return type == Float8::kE4M3 ? 448 : 57344; }

// By looking at all: the nearest, of two the one with an even last bit.
int Nearest(Float8 type, double x) {
  int best = 0;
  for (int bits = 0; bits < 0x80; ++bits) {
    const double value = ValueOf(type, bits), distance = std::abs(value - std::abs(x));
    const double least = std::abs(ValueOf(type, best) - std::abs(x));
    if (distance < least || (distance == least && bits % 2 == 0)) best = bits;
  }
  return std::signbit(x) ? best | 0x80 : best;
}

constexpr Float8 kTypes[] = {Float8::kE4M3, Float8::kE5M2};

TEST(Float8Test, EveryBf16GoesToTheNearest) {
  for (const Float8 type : kTypes) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      const float x = BF16ToFloat(static_cast<uint16_t>(bits));
      if (!(std::abs(x) <= LargestOf(type))) continue;
      const float rounded = RoundToFloat8(x, FormatOf(type));
      const int nearest = Nearest(type, x);
      ASSERT_EQ(double{rounded}, ValueOf(type, nearest)) << x;
      ASSERT_EQ(Float8Bits(rounded, FormatOf(type)), nearest) << x;
    }
  }
}

TEST(Float8Test, EveryNumberIsItself) {
  for (const Float8 type : kTypes) {
    for (int bits = 0; bits < 0x100; ++bits) {
      const double value = ValueOf(type, bits);
      if (std::isnan(value)) continue;
      const float rounded = RoundToFloat8(static_cast<float>(value), FormatOf(type));
      EXPECT_EQ(double{rounded}, value);
      EXPECT_EQ(Float8Bits(rounded, FormatOf(type)), bits);
    }
  }
}

TEST(Float8Test, WhatIsNotFiniteIsNaN) {
  for (const Float8 type : kTypes) {
    for (const float x : {INFINITY, -INFINITY, std::numeric_limits<float>::quiet_NaN()}) {
      EXPECT_TRUE(std::isnan(RoundToFloat8(x, FormatOf(type))));
      EXPECT_EQ(Float8Bits(RoundToFloat8(x, FormatOf(type)), FormatOf(type)), kFloat8NaN);
    }
  }
}

// For every magnitude of a bf16: it is a number of the format when scaled, and not when scaled by twice as
// much.
TEST(Float8Test, TheScaleIsTheLargestThatFits) {
  for (const Float8 type : kTypes) {
    for (uint32_t bits = 1; bits < 0x7F80; ++bits) {
      const float x = BF16ToFloat(static_cast<uint16_t>(bits));
      const int exponent = Float8ScaleExponent(std::bit_cast<uint32_t>(x), FormatOf(type));
      ASSERT_LE(std::ldexp(double{x}, exponent), LargestOf(type)) << x;
      ASSERT_TRUE(exponent == 100 || std::ldexp(double{x}, exponent + 1) > LargestOf(type)) << x;
      // Scaling is exact, there and back, also of the smallest numbers of the format.
      const double smallest = ValueOf(type, 1);
      ASSERT_EQ(double{PowerOfTwo(exponent)}, std::ldexp(1.0, exponent));
      const auto back = static_cast<float>(smallest) * PowerOfTwo(-exponent);
      ASSERT_EQ(BF16ToFloat(RoundToBF16(back)), std::ldexp(smallest, -exponent));
    }
  }
  EXPECT_EQ(Float8ScaleExponent(0, FormatOf(Float8::kE4M3)), 0);
}

TEST(Float8Test, Names) {
  EXPECT_EQ(Float8Named("e4m3"), Float8::kE4M3);
  EXPECT_EQ(Float8Named("e5m2"), Float8::kE5M2);
  EXPECT_EQ(Float8Named("e3m4"), std::nullopt);
}

}  // namespace
}  // namespace ft
