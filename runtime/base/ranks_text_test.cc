#include "runtime/base/ranks_text.h"

#include <gtest/gtest.h>

namespace ft {
namespace {

TEST(RanksTextTest, RanksAreNamedInRanges) {
  EXPECT_EQ(RanksText({3}), "rank 3");
  EXPECT_EQ(RanksText({0, 1, 2, 5, 7, 8}), "ranks 0-2,5,7,8");
  std::vector<int> odd;
  for (int rank = 1; rank < 1000; rank += 2) odd.push_back(rank);
  EXPECT_EQ(RanksText(odd), "ranks 1,3,5,7,9,11,13,15,17,19,21,23 and 488 more");
}

}  // namespace
}  // namespace ft
