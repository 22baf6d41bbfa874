// Rounding to floats of 8 bits on every instruction set: every bf16, what is not finite, too, in pieces of
// odd lengths.
#include "runtime/kernels/matmul/cpu_float8_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/backends/cpu/isa.h"
#include "runtime/base/round_float.h"

namespace ft::cpu {
namespace {

constexpr int64_t kEveryBf16 = 65536;
constexpr int64_t kLengths[] = {1, 7, 37, kEveryBf16};

std::vector<uint16_t> EveryBf16() {
  std::vector<uint16_t> x(kEveryBf16);
  for (int64_t i = 0; i < kEveryBf16; ++i) x[i] = static_cast<uint16_t>(i * 40503);  // in no order
  return x;
}

TEST(Float8LoopsTest, RoundAsTheDefinition) {
  const std::vector<uint16_t> x = EveryBf16();
  for (const Isa isa : UsableIsas()) {
    const Float8Loops& loops = LoopsFor(isa).float8;
    for (const Float8 type : {Float8::kE4M3, Float8::kE5M2}) {
      for (const int exponent : {0, 9, -3, -120}) {
        const float scale = PowerOfTwo(exponent), inverse = PowerOfTwo(-exponent);
        const std::vector<float> scales(kEveryBf16, scale), inverses(kEveryBf16, inverse);
        std::vector<uint16_t> together(kEveryBf16), each(kEveryBf16);
        for (const int64_t piece : kLengths) {
          for (int64_t i = 0; i < kEveryBf16; i += piece) {
            const int64_t n = std::min(piece, kEveryBf16 - i);
            loops.round(x.data() + i, n, type, scale, inverse, together.data() + i);
            loops.round_each(x.data() + i, n, type, scales.data(), inverses.data(), each.data() + i);
          }
          ASSERT_EQ(together, each);
          for (int64_t i = 0; i < kEveryBf16; ++i) {
            const float value = BF16ToFloat(x[i]) * scale;
            // A scale is such that nothing finite is beyond the largest number.
            if (std::abs(value) > 448 && std::isfinite(BF16ToFloat(x[i]))) continue;
            const float rounded = RoundToFloat8(value, FormatOf(type)) * inverse;
            if (std::isnan(rounded)) {
              ASSERT_TRUE(std::isnan(BF16ToFloat(together[i]))) << Name(isa) << " " << x[i];
            } else {
              ASSERT_EQ(BF16ToFloat(together[i]), rounded) << Name(isa) << " " << x[i] << " " << exponent;
            }
          }
        }
      }
    }
  }
}

// What is not finite is no greatest element.
TEST(Float8LoopsTest, TheGreatestIsFinite) {
  const std::vector<uint16_t> x = EveryBf16();
  for (const Isa isa : UsableIsas()) {
    const Float8Loops& loops = LoopsFor(isa).float8;
    for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{100}, kEveryBf16}) {
      uint16_t expected = 0;
      std::vector<uint16_t> each(static_cast<size_t>(n), 5), expected_each(each);
      for (int64_t i = 0; i < n; ++i) {
        const uint16_t magnitude = x[i] & 0x7FFF;
        if (magnitude >= 0x7F80) continue;
        expected = std::max(expected, magnitude);
        expected_each[i] = std::max(expected_each[i], magnitude);
      }
      EXPECT_EQ(loops.greatest(x.data(), n), expected);
      loops.greatest_of_each(x.data(), n, each.data());
      EXPECT_EQ(each, expected_each);
    }
  }
}

}  // namespace
}  // namespace ft::cpu
