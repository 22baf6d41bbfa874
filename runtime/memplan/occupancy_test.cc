#include "runtime/memplan/occupancy.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace ft {
namespace {

constexpr uint64_t kAddresses = 200;

struct Taken {
  Sections::Span when;
  Occupancy::Interval interval;
};

// Address by address: whether it is taken at some time of `when`.
std::vector<bool> Expected(const std::vector<Taken>& all, Sections::Span when) {
  std::vector<bool> taken(kAddresses);
  for (const Taken& each : all) {
    if (each.when.begin >= when.end || each.when.end <= when.begin) continue;
    std::fill(taken.begin() + each.interval.begin, taken.begin() + each.interval.end, true);
  }
  return taken;
}

std::vector<bool> Collected(const Occupancy& occupancy, Sections::Span when) {
  std::vector<absl::Span<const Occupancy::Interval>> lists;
  occupancy.Collect(when, &lists);
  std::vector<bool> taken(kAddresses);
  for (const absl::Span<const Occupancy::Interval>& list : lists) {
    for (size_t i = 0; i < list.size(); ++i) {
      EXPECT_LT(list[i].begin, list[i].end);
      EXPECT_TRUE(i == 0 || list[i - 1].end < list[i].begin) << "neither ascending nor joined";
      std::fill(taken.begin() + list[i].begin, taken.begin() + list[i].end, true);
    }
  }
  return taken;
}

class OccupancyTest : public testing::TestWithParam<uint32_t> {
 protected:
  uint32_t Below(uint32_t n) { return random_() % n; }
  Sections::Span SomeTime() {
    const uint32_t begin = Below(GetParam());
    return {begin, begin + 1 + Below(GetParam() - begin)};
  }
  Occupancy::Interval SomeAddresses() {
    const uint64_t begin = Below(kAddresses - 20);
    return {begin, begin + 1 + Below(20)};
  }

  std::mt19937 random_{GetParam()};
};

TEST_P(OccupancyTest, KnowsWhatIsTakenAtSomeTimeOfASpan) {
  Occupancy occupancy(GetParam());
  for (int round = 0; round < 3; ++round) {
    std::vector<Taken> all;
    for (int i = 0; i < 60; ++i) {
      all.push_back({SomeTime(), SomeAddresses()});
      occupancy.Take(all.back().when, all.back().interval);
      const Sections::Span when = SomeTime();
      ASSERT_EQ(Collected(occupancy, when), Expected(all, when)) << when.begin << " to " << when.end;
    }
    occupancy.Clear();
    ASSERT_EQ(Collected(occupancy, {0, GetParam()}), std::vector<bool>(kAddresses));
  }
}

INSTANTIATE_TEST_SUITE_P(Sections, OccupancyTest, testing::Values(1, 2, 3, 7, 8, 9, 33, 100));

// What is stacked at one time without gaps is one interval.
TEST(OccupancyOfStacksTest, JoinsWhatTouches) {
  Occupancy occupancy(16);
  for (uint64_t i = 0; i < 8; ++i) {
    const uint32_t inset = static_cast<uint32_t>(i);
    occupancy.Take({inset, 16 - inset}, {i * 10, i * 10 + 10});
  }
  std::vector<absl::Span<const Occupancy::Interval>> lists;
  occupancy.Collect({0, 16}, &lists);
  ASSERT_EQ(lists.size(), 1u);
  ASSERT_EQ(lists[0].size(), 1u);
  EXPECT_EQ(lists[0][0].begin, 0u);
  EXPECT_EQ(lists[0][0].end, 80u);
}

}  // namespace
}  // namespace ft
