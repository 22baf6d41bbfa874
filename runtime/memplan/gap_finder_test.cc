#include "runtime/memplan/gap_finder.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace ft {
namespace {

using Intervals = std::vector<Occupancy::Interval>;

constexpr uint64_t kLastAddress = 100;

uint64_t Find(const std::vector<Intervals>& lists, uint64_t size, Fit fit) {
  std::vector<absl::Span<const Occupancy::Interval>> spans(lists.begin(), lists.end());
  return GapFinder(&spans).Find(size, fit);
}

// Address by address.
uint64_t ByAddress(const std::vector<Intervals>& lists, uint64_t size, Fit fit) {
  std::vector<bool> taken(kLastAddress + 1);
  uint64_t top = 0;
  for (const Intervals& list : lists) {
    for (const Occupancy::Interval& each : list) {
      std::fill(taken.begin() + each.begin, taken.begin() + each.end, true);
      top = std::max(top, each.end);
    }
  }
  uint64_t best = top, tightest = kLastAddress + 1;
  for (uint64_t begin = 0; begin < top; ++begin) {
    if (taken[begin] || (begin > 0 && !taken[begin - 1])) continue;
    uint64_t end = begin;
    while (!taken[end]) ++end;
    if (end - begin < size || end - begin >= tightest) continue;
    if (fit == Fit::kFirst) return begin;
    best = begin;
    tightest = end - begin;
  }
  return best;
}

TEST(GapFinderTest, FindsTheLowestAndTheTightestGap) {
  const std::vector<Intervals> lists = {{{0, 4}, {20, 30}}, {{2, 10}}, {{33, 40}}};
  EXPECT_EQ(Find(lists, 3, Fit::kFirst), 10u);
  EXPECT_EQ(Find(lists, 3, Fit::kBest), 30u);
  EXPECT_EQ(Find(lists, 11, Fit::kFirst), 40u);
  EXPECT_EQ(Find(lists, 11, Fit::kBest), 40u);
  EXPECT_EQ(Find({}, 5, Fit::kFirst), 0u);
  EXPECT_EQ(Find({}, 5, Fit::kBest), 0u);
}

TEST(GapFinderTest, AgreesWithALookAtEveryAddress) {
  std::mt19937 random(1);
  for (int round = 0; round < 5000; ++round) {
    std::vector<Intervals> lists(random() % 6);
    for (Intervals& list : lists) {
      for (uint64_t end = random() % 30; end < kLastAddress - 20; end += 1 + random() % 25) {
        const uint64_t begin = end;
        end += 1 + random() % 12;
        list.push_back({begin, end});
      }
    }
    for (const Fit fit : {Fit::kFirst, Fit::kBest}) {
      const uint64_t size = 1 + random() % 12;
      ASSERT_EQ(Find(lists, size, fit), ByAddress(lists, size, fit))
          << "round " << round << ", size " << size;
    }
  }
}

}  // namespace
}  // namespace ft
