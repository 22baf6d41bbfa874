#include "tools/ftckpt/elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace ft::ckpt {
namespace {

template <typename T>
double WidenOne(SafetensorsDType dtype, T value) {
  double out = 0;
  Widen(dtype, reinterpret_cast<const std::byte*>(&value), 1, &out);
  return out;
}

TEST(ElementsTest, EightBitFloatsHaveTheValuesOfTheirTables) {
  const auto e4m3 = [](uint8_t bits) { return WidenOne(SafetensorsDType::kF8E4M3, bits); };
  EXPECT_EQ(e4m3(0x7E), 448);
  EXPECT_EQ(e4m3(0x38), 1);
  EXPECT_EQ(e4m3(0xB8), -1);
  EXPECT_EQ(e4m3(0x01), std::ldexp(1, -9));
  EXPECT_EQ(e4m3(0x08), std::ldexp(1, -6));
  EXPECT_TRUE(std::isnan(e4m3(0x7F)));
  const auto e5m2 = [](uint8_t bits) { return WidenOne(SafetensorsDType::kF8E5M2, bits); };
  EXPECT_EQ(e5m2(0x7B), 57344);
  EXPECT_EQ(e5m2(0x3C), 1);
  EXPECT_EQ(e5m2(0x01), std::ldexp(1, -16));
  EXPECT_TRUE(std::isinf(e5m2(0x7C)));
}

TEST(ElementsTest, IntegersKeepTheirSigns) {
  EXPECT_EQ(WidenOne(SafetensorsDType::kI8, int8_t{-3}), -3);
  EXPECT_EQ(WidenOne(SafetensorsDType::kU8, uint8_t{253}), 253);
  EXPECT_EQ(WidenOne(SafetensorsDType::kI64, int64_t{-1} << 40), -std::ldexp(1, 40));
  EXPECT_EQ(WidenOne(SafetensorsDType::kU64, uint64_t{1} << 63), std::ldexp(1, 63));
  EXPECT_EQ(WidenOne(SafetensorsDType::kBF16, uint16_t{0xC000}), -2);
}

TEST(ElementsTest, ConversionsRoundToNearestEvenAndCountWhatOverflows) {
  // Halfway between two bf16 is the even one; 70000 is no binary16; infinity was none before.
  const std::vector<float> in = {1.00390625f, 1.01171875f, 70000.0f, std::numeric_limits<float>::infinity()};
  const auto* bytes = reinterpret_cast<const std::byte*>(in.data());
  std::vector<uint16_t> out(in.size());
  EXPECT_EQ(Convert(DType::kF32, bytes, DType::kBF16, reinterpret_cast<std::byte*>(out.data()), in.size()),
            0u);
  EXPECT_EQ(out[0], 0x3F80);
  EXPECT_EQ(out[1], 0x3F82);
  EXPECT_EQ(Convert(DType::kF32, bytes, DType::kF16, reinterpret_cast<std::byte*>(out.data()), in.size()),
            1u);
  EXPECT_EQ(out[2], 0x7C00);
  std::vector<float> back(in.size());
  Convert(DType::kF16, reinterpret_cast<const std::byte*>(out.data()), DType::kF32,
          reinterpret_cast<std::byte*>(back.data()), 2);
  EXPECT_EQ(back[0], 1.00390625f);
}

}  // namespace
}  // namespace ft::ckpt
