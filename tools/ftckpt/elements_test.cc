#include "tools/ftckpt/elements.h"

#include <gtest/gtest.h>

#include <cmath>

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

}  // namespace
}  // namespace ft::ckpt
