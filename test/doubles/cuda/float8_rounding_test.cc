// Operands of products in fp8, emulated: every bf16, what is not finite, too, as bytes of the nearest
// numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/base/cuda_workspace.h"
#include "runtime/base/float8.h"
#include "runtime/base/round_float.h"
#include "runtime/kernels/matmul/cuda_float8.h"

namespace ft::cuda {
namespace {

constexpr int64_t kSide = 256;

// In natural order 128 neighbours are of one binade, and share a scale.
void Check(Float8 type, bool transpose) {
  alignas(16) static uint16_t x[kSide * kSide];
  alignas(16) static uint8_t out[kSide * kSide];
  const auto bits = [](int64_t outer, int64_t k) { return static_cast<uint16_t>(outer * kSide + k); };
  for (int64_t outer = 0; outer < kSide; ++outer)
    for (int64_t k = 0; k < kSide; ++k) x[transpose ? k * kSide + outer : outer * kSide + k] = bits(outer, k);
  std::vector<uint32_t> greatest(cuda_workspace::kFloat8Greatest);
  std::vector<float> scales(kSide * 2);
  const Float8Rounding rounding = {.x = x,
                                   .rows = kSide,
                                   .columns = kSide,
                                   .transpose = transpose,
                                   .type = type,
                                   .scale = ScaleOf::kVectors,
                                   .padded = kSide,
                                   .out = out,
                                   .greatest = greatest.data(),
                                   .scales = scales.data(),
                                   .strides = StridesOf(ScaleOf::kVectors, kSide, kSide)};
  ASSERT_EQ(RoundToFloat8(rounding, nullptr), 0);
  const Float8Format& format = FormatOf(type);
  for (int64_t outer = 0; outer < kSide; ++outer) {
    for (int64_t block = 0; block < 2; ++block) {
      uint32_t largest = 0;
      for (int64_t k = block * 128; k < (block + 1) * 128; ++k) {
        const uint32_t magnitude = static_cast<uint32_t>(bits(outer, k) & 0x7FFF) << 16;
        if (magnitude < kFloat8Infinity) largest = std::max(largest, magnitude);
      }
      const int exponent = Float8ScaleExponent(largest, format);
      ASSERT_EQ(scales[block * kSide + outer], PowerOfTwo(-exponent)) << outer << " " << block;
      for (int64_t k = block * 128; k < (block + 1) * 128; ++k) {
        const float scaled = BF16ToFloat(bits(outer, k)) * PowerOfTwo(exponent);
        ASSERT_EQ(out[outer * kSide + k], Float8Bits(ft::RoundToFloat8(scaled, format), format))
            << format.name << " " << bits(outer, k) << (transpose ? " transposed" : "");
      }
    }
  }
}

TEST(Float8RoundingTest, OfEveryBf16) {
  for (const Float8 type : {Float8::kE4M3, Float8::kE5M2})
    for (const bool transpose : {false, true}) Check(type, transpose);
}

}  // namespace
}  // namespace ft::cuda
