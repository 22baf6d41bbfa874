#include "runtime/collective/tree_sum.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace ft {
namespace {

TEST(TreeSumTest, TheOrderIsTheTree) {
  // In fp32, 1e8 + 1 = 1e8: each value tells which additions came first.
  const float big = 1e8f, one = 1.0f, minus = -1e8f;
  const auto sum = [](const std::vector<float>& values) {
    std::vector<const void*> parts;
    for (const float& value : values) parts.push_back(&value);
    float out = 0;
    TreeSum(parts, 1, DType::kF32, &out);
    return out;
  };
  EXPECT_EQ(sum({big, one, minus}), 0.0f);                      // (b + 1) - b
  EXPECT_EQ(sum({big, minus, one}), 1.0f);                      // (b - b) + 1
  EXPECT_EQ(sum({big, one, minus, one}), 0.0f);                 // (b + 1) + (-b + 1)
  EXPECT_EQ(sum({big, minus, one, one}), 2.0f);                 // (b - b) + (1 + 1)
  EXPECT_EQ(sum({big, one, minus, one, one}), 1.0f);            // four, then the fifth
  EXPECT_EQ(sum({big, one, one, minus, 3, 4}), 7.0f);           // four, then two
  EXPECT_EQ(sum({big, one, one, minus, 3, big, minus}), 0.0f);  // four, then (3 + b) - b
}

TEST(TreeSumTest, Bf16IsAccumulatedInFp32AndRoundedToNearestEven) {
  const auto bf16 = [](float value) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16); };
  const auto sum = [](std::vector<uint16_t> values) {
    std::vector<const void*> parts;
    for (const uint16_t& value : values) parts.push_back(&value);
    uint16_t out = 0;
    TreeSum(parts, 1, DType::kBF16, &out);
    return out;
  };
  // 256 + 1 is a tie in bf16 (steps of 2): to even, 256; 258 + 1 goes to 260. A third one makes it exact.
  EXPECT_EQ(sum({bf16(256), bf16(1)}), bf16(256));
  EXPECT_EQ(sum({bf16(258), bf16(1)}), bf16(260));
  EXPECT_EQ(sum({bf16(256), bf16(1), bf16(1)}), bf16(258));
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(sum({bf16(infinity), bf16(1)}), bf16(infinity));
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(uint32_t{sum({bf16(infinity), bf16(-infinity)})} << 16)));
}

TEST(TreeSumTest, F16AndIntegers) {
  const _Float16 a = 2048, b = 1, c = 1;  // steps of 2 at 2048
  _Float16 half = 0;
  TreeSum({&a, &b, &c}, 1, DType::kF16, &half);
  EXPECT_EQ(static_cast<float>(half), 2050.0f);
  const int64_t x = std::numeric_limits<int64_t>::max(), y = 1;
  int64_t wide = 0;
  TreeSum({&x, &y}, 1, DType::kI64, &wide);
  EXPECT_EQ(wide, std::numeric_limits<int64_t>::min());
  const int64_t odd = (int64_t{1} << 60) + 1;
  TreeSum({&odd}, 1, DType::kI64, &wide);
  EXPECT_EQ(wide, odd);  // never by way of a float
}

TEST(TreeSumTest, MayWriteOverAPart) {
  std::vector<float> a(5000), b(5000);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i), b[i] = 0.5f;
  TreeSum({a.data(), b.data()}, a.size(), DType::kF32, b.data());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(b[i], static_cast<float>(i) + 0.5f);
}

TEST(TreeSumTest, RefusesWhatHasNoMeaning) {
  const ReducePart words{.dtype = DType::kI64}, brain{.dtype = DType::kBF16}, bytes{.dtype = DType::kU8};
  EXPECT_TRUE(CheckReductions({words, brain}, {"x", 0}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(CheckReductions({words, bytes}, {"x", 0})));
}

}  // namespace
}  // namespace ft
