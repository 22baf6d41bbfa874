#include "runtime/base/round_float.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace ft {
namespace {

double FromF16(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1F, fraction = bits & 0x3FF;
  const double magnitude = exponent == 0    ? std::ldexp(fraction, -24)
                           : exponent == 31 ? std::ldexp(1024, 6)  // where the next number would be
                                            : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

double FromBF16(uint16_t bits) {
  // Infinity stands where the next number would be.
  return (bits & 0x7FFF) == 0x7F80 ? std::copysign(0x1p128, static_cast<int16_t>(bits))
                                   : std::bit_cast<float>(uint32_t{bits} << 16);
}

// Every finite number of the 16-bit type comes back from a float, and around the middle of any two neighbours
// the nearer one, the even one in the middle itself.
template <typename Round, typename Widen>
void CheckAll(uint16_t infinity, Round round, Widen widen) {
  for (uint32_t bits = 0; bits < infinity; ++bits) {
    const double low = widen(bits), high = widen(bits + 1), middle = (low + high) / 2;
    const auto exact = static_cast<float>(middle);
    ASSERT_EQ(round(static_cast<float>(low)), bits);
    ASSERT_EQ(round(static_cast<float>(-low)), bits | 0x8000);
    if (exact != middle) continue;  // a float cannot say it: only below bf16's smallest steps
    ASSERT_EQ(round(exact), bits + (bits & 1)) << bits;
    ASSERT_EQ(round(-exact), (bits + (bits & 1)) | 0x8000) << bits;
    ASSERT_EQ(round(std::nextafter(exact, 0.0f)), bits) << bits;
    ASSERT_EQ(round(std::nextafter(exact, std::numeric_limits<float>::infinity())), bits + 1) << bits;
  }
}

TEST(RoundFloatTest, F16) { CheckAll(0x7C00, RoundToF16, FromF16); }

TEST(RoundFloatTest, BF16) { CheckAll(0x7F80, RoundToBF16, FromBF16); }

TEST(RoundFloatTest, WhatIsNotFiniteStaysSo) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(RoundToF16(kInfinity), 0x7C00);
  EXPECT_EQ(RoundToF16(-kInfinity), 0xFC00);
  EXPECT_EQ(RoundToF16(std::numeric_limits<float>::max()), 0x7C00);
  EXPECT_EQ(RoundToBF16(kInfinity), 0x7F80);
  EXPECT_EQ(RoundToBF16(-kInfinity), 0xFF80);
  for (const uint32_t bits : {0x7F800001u, 0x7FFFFFFFu, 0xFF800001u}) {
    const auto nan = std::bit_cast<float>(bits);
    EXPECT_GT(RoundToF16(nan) & 0x7FFF, 0x7C00);
    EXPECT_GT(RoundToBF16(nan) & 0x7FFF, 0x7F80);
  }
}

}  // namespace
}  // namespace ft
