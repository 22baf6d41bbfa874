// The exact search against brute force, which shares nothing with it, and on instances that are known to be
// hard.
#include "runtime/memplan/exact_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "runtime/memplan/memplan.h"
#include "runtime/memplan/validator.h"

namespace ft {
namespace {

constexpr uint64_t kPlenty = 1'000'000'000;

std::vector<uint32_t> InOrder(size_t n) {
  std::vector<uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

// Every offset of every buffer in turn, without a thought.
bool FitsByBruteForce(const std::vector<LiveRange>& ranges, uint64_t height, std::vector<uint64_t>& offsets) {
  const size_t i = offsets.size();
  if (i == ranges.size()) return true;
  for (uint64_t offset = 0; offset + ranges[i].size <= height; ++offset) {
    bool free = true;
    for (size_t j = 0; j < i && free; ++j) {
      free = ranges[i].first > ranges[j].last || ranges[j].first > ranges[i].last ||
             offset >= offsets[j] + ranges[j].size || offsets[j] >= offset + ranges[i].size;
    }
    if (!free) continue;
    offsets.push_back(offset);
    if (FitsByBruteForce(ranges, height, offsets)) return true;
    offsets.pop_back();
  }
  return false;
}

uint64_t LowestByBruteForce(const std::vector<LiveRange>& ranges) {
  for (uint64_t height = MaxLiveBytes(ranges, 1).bytes;; ++height) {
    std::vector<uint64_t> offsets;
    if (FitsByBruteForce(ranges, height, offsets)) return height;
  }
}

// A random row of lifetimes that is crowded everywhere, where gaps matter most.
std::vector<LiveRange> SmallInstance(uint64_t seed) {
  std::mt19937_64 bits(seed);
  const uint32_t end = 6 + bits() % 4;
  const uint64_t height = 5 + bits() % 4;
  std::vector<LiveRange> ranges;
  for (int tries = 0; tries < 60 && ranges.size() < 13; ++tries) {
    const uint32_t first = bits() % end;
    ranges.push_back({1 + bits() % 3, first, std::min<uint32_t>(end - 1, first + bits() % 4)});
    if (MaxLiveBytes(ranges, 1).bytes > height) ranges.pop_back();
  }
  return ranges;
}

TEST(ExactSearch, FindsTheOptimumAndProvesThatNothingIsLower) {
  int above_the_bound = 0;
  for (uint64_t seed = 0; seed < 8000; ++seed) {
    const std::vector<LiveRange> ranges = SmallInstance(seed);
    const uint64_t optimum = LowestByBruteForce(ranges);
    above_the_bound += optimum > MaxLiveBytes(ranges, 1).bytes;
    ExactSearch search(ranges);
    const std::vector<uint32_t> order = InOrder(ranges.size());
    ASSERT_EQ(search.Fit(optimum - 1, order, kPlenty), Verdict::kTooLow) << "seed " << seed;
    ASSERT_EQ(search.Fit(optimum, order, kPlenty), Verdict::kFits) << "seed " << seed;
    ASSERT_EQ(ValidateMemoryPlan(ranges, search.offsets(), optimum, 1), absl::OkStatus()) << "seed " << seed;
    // What was learnt at one height holds no lie for another.
    ASSERT_EQ(search.Fit(optimum - 1, order, kPlenty), Verdict::kTooLow) << "seed " << seed;
  }
  EXPECT_GE(above_the_bound, 5) << "instances whose proof is more than a sum";
}

TEST(ExactSearch, TellsWhenTheWorkIsUsedUp) {
  std::vector<LiveRange> ranges;
  for (uint32_t i = 0; i < 40; ++i) ranges.push_back({100 + 7 * (i % 13), i / 2, i / 2 + 5 + i % 7});
  ExactSearch search(ranges);
  EXPECT_EQ(search.Fit(MaxLiveBytes(ranges, 1).bytes, InOrder(ranges.size()), 10), Verdict::kUnknown);
  EXPECT_EQ(search.Fit(100 * 1000, InOrder(ranges.size()), kPlenty), Verdict::kFits);
}

TEST(ExactSearch, SuitsOnlyWhatFitsIntoMemory) {
  EXPECT_TRUE(ExactSearch::Suits(std::vector<LiveRange>(2000, {1, 0, 9})));
  EXPECT_FALSE(ExactSearch::Suits(std::vector<LiveRange>(3000, {1, 0, 9})));
  std::vector<LiveRange> many;
  for (uint32_t i = 0; i < 5000; ++i) many.push_back({1, i, i});
  EXPECT_FALSE(ExactSearch::Suits(many));
}

std::vector<LiveRange> ReadInstance(const std::string& name) {
  std::ifstream file(std::string(FT_PACKING_INSTANCES "/") + name);
  std::vector<LiveRange> ranges;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    unsigned long lower = 0, upper = 0, size = 0;
    EXPECT_EQ(std::sscanf(line.c_str(), "%*[^,],%lu,%lu,%lu", &lower, &upper, &size), 3) << line;
    ranges.push_back({size, static_cast<uint32_t>(lower), static_cast<uint32_t>(upper - 1)});
  }
  return ranges;
}

// Seconds each on two cores; the bound is on work, so that a loaded machine finds the same.
TEST(HardInstances, FitIntoTheMebibyteTheyAreKnownToFitInto) {
  for (const auto& [name, buffers] : {std::pair("A", 154), {"B", 170}, {"C", 203}, {"D", 213}, {"E", 215}}) {
    const std::vector<LiveRange> ranges = ReadInstance(std::string(name) + ".1048576.csv");
    ASSERT_EQ(ranges.size(), static_cast<size_t>(buffers)) << name;
    const absl::StatusOr<MemoryPlan> plan = PlanMemory(ranges, 1);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_LE(plan->arena_bytes, 1'048'576u) << name;
    EXPECT_EQ(ValidateMemoryPlan(ranges, plan->offsets, plan->arena_bytes, 1), absl::OkStatus()) << name;
  }
}

}  // namespace
}  // namespace ft
