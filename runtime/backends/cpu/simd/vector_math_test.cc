// The bounds that vector_math.h states, against the C library in f64. Compiled without FMA where the baseline
// has none.
#include "runtime/backends/cpu/simd/vector_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ft::cpu::vector_math_test {
namespace {

// Distance in units of the last place of the exact value.
double Ulps(float got, double want) {
  int exponent = 0;
  std::frexp(want, &exponent);
  return std::abs(got - want) / std::ldexp(1.0, exponent - 24);
}

TEST(VectorMath, Exp) {
  for (double x = -87.3; x < 88.7; x += 0.000917) {
    const float argument = static_cast<float>(x);
    ASSERT_LE(Ulps(Exp(argument), std::exp(double{argument})), 2.0) << argument;
  }
  EXPECT_EQ(Exp(0.0f), 1.0f);
  EXPECT_EQ(Exp(-1000.0f), 0.0f);
  EXPECT_EQ(Exp(-INFINITY), 0.0f);
  EXPECT_EQ(Exp(89.0f), INFINITY);
  EXPECT_TRUE(std::isnan(Exp(NAN)));
  EXPECT_EQ(SoftmaxExp(-60.5f), 0.0f);
  EXPECT_TRUE(std::isnan(SoftmaxExp(NAN)));
}

TEST(VectorMath, Sigmoid) {
  for (double x = -80; x < 80; x += 0.000917) {
    const float argument = static_cast<float>(x);
    ASSERT_LE(Ulps(Sigmoid(argument), 1 / (1 + std::exp(-double{argument}))), 4.0) << argument;
  }
}

TEST(VectorMath, Log) {
  for (double x = 0x1p-32; x <= 1.0; x *= 1.00003) {
    const float argument = static_cast<float>(x);
    ASSERT_LE(Ulps(Log(argument), std::log(double{argument})), 2.0) << argument;
  }
  EXPECT_EQ(Log(1.0f), 0.0f);
}

TEST(VectorMath, SinCos) {
  constexpr double kLargest = 0.70710678118654752;
  for (double x = -M_PI / 4; x <= M_PI / 4; x += 0.00000917) {
    const float argument = static_cast<float>(x);
    ASSERT_NEAR(SinReduced(argument), std::sin(double{argument}), 2 * 0x1p-24 * kLargest) << argument;
    ASSERT_NEAR(CosReduced(argument), std::cos(double{argument}), 2 * 0x1p-24) << argument;
  }
}

TEST(VectorMath, NormalCdf) {
  for (double x = -13; x <= 13; x += 0.000917) {
    const float argument = static_cast<float>(x);
    ASSERT_NEAR(NormalCdf(argument), 0.5 * std::erfc(-double{argument} / std::sqrt(2.0)), 2e-7) << argument;
  }
  EXPECT_TRUE(std::isnan(NormalCdf(NAN)));
}

}  // namespace
}  // namespace ft::cpu::vector_math_test
