#include "runtime/base/checked.h"

#include <gtest/gtest.h>

namespace ft {
namespace {

TEST(CheckedTest, WhatFitsIsExact) {
  EXPECT_EQ(CheckedAdd(2, 3), 5);
  EXPECT_EQ(CheckedAdd(kTooLarge - 1, 1), kTooLarge);
  EXPECT_EQ(CheckedMul(int64_t{1} << 31, int64_t{1} << 31), int64_t{1} << 62);
  EXPECT_EQ(CheckedMul(3, 5, 7), 105);
  EXPECT_EQ(CheckedMul(0, kTooLarge), 0);
  EXPECT_EQ(CheckedMul(kTooLarge, 0), 0);
}

TEST(CheckedTest, WhatDoesNotFitIsTooLarge) {
  EXPECT_EQ(CheckedAdd(kTooLarge, 1), kTooLarge);
  EXPECT_EQ(CheckedMul(int64_t{1} << 32, int64_t{1} << 31), kTooLarge);
  EXPECT_EQ(CheckedMul(kTooLarge, 2), kTooLarge);
  // heads + 2 kv_heads of the plan that wrapped to 2.
  const int64_t heads = 6148914691236517206;  // (2^64 + 2) / 3
  EXPECT_EQ(CheckedAdd(heads, CheckedMul(2, heads)), kTooLarge);
  EXPECT_EQ(CheckedMul(int64_t{1} << 40, int64_t{1} << 40, int64_t{1} << 40), kTooLarge);
}

TEST(CheckedTest, CeilDivReachesTheLargest) {
  EXPECT_EQ(CeilDiv(7, 4), 2);
  EXPECT_EQ(CeilDiv(8, 4), 2);
  EXPECT_EQ(CeilDiv(0, 4), 0);
  EXPECT_EQ(CeilDiv(kTooLarge, 2), int64_t{1} << 62);
}

}  // namespace
}  // namespace ft
