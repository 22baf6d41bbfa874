#include "runtime/memplan/memplan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "runtime/memplan/validator.h"

namespace ft {
namespace {

// Every pair compared: slow, and too simple to be wrong.
void ExpectDisjoint(const std::vector<LiveRange>& ranges, const MemoryPlan& plan, uint64_t alignment) {
  ASSERT_EQ(plan.offsets.size(), ranges.size());
  for (size_t i = 0; i < ranges.size(); ++i) {
    ASSERT_EQ(plan.offsets[i] % alignment, 0u) << i;
    ASSERT_LE(plan.offsets[i] + ranges[i].size, plan.arena_bytes) << i;
    for (size_t j = 0; j < i; ++j) {
      const bool same_time = ranges[i].first <= ranges[j].last && ranges[j].first <= ranges[i].last;
      const bool same_bytes = plan.offsets[i] < plan.offsets[j] + ranges[j].size &&
                              plan.offsets[j] < plan.offsets[i] + ranges[i].size;
      ASSERT_FALSE(same_time && same_bytes) << i << " and " << j;
    }
  }
}

MemoryPlan PlanAndCheck(const std::vector<LiveRange>& ranges, uint64_t alignment = kDefaultAlignment,
                        bool every_pair = true) {
  absl::StatusOr<MemoryPlan> plan = PlanMemory(ranges, alignment);
  EXPECT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->arena_bytes % alignment, 0u);
  EXPECT_GE(plan->arena_bytes, plan->lower_bound);
  EXPECT_EQ(plan->lower_bound, MaxLiveBytes(ranges, alignment).bytes);
  const absl::Status valid = ValidateMemoryPlan(ranges, plan->offsets, plan->arena_bytes, alignment);
  EXPECT_TRUE(valid.ok()) << valid;
  if (every_pair) ExpectDisjoint(ranges, *plan, alignment);
  return *std::move(plan);
}

uint64_t Below(std::mt19937_64& random, uint64_t n) {
  return random() % n;
}  // the same on every standard library

std::vector<LiveRange> RandomRanges(uint64_t seed, size_t n, uint32_t end, uint32_t max_life,
                                    uint64_t max_size) {
  std::mt19937_64 random(seed);
  std::vector<LiveRange> ranges;
  for (size_t i = 0; i < n; ++i) {
    const uint32_t first = Below(random, end);
    const uint32_t last = std::min<uint64_t>(end - 1, first + Below(random, max_life));
    ranges.push_back({1 + Below(random, max_size), first, last});
  }
  return ranges;
}

// Tensors that a transformer's step holds: what a layer saves for backward (nested lifetimes), temporaries,
// gathered units with the next one's prefetch, gradients until they are reduced, and state that lives
// throughout.
std::vector<LiveRange> TrainingStep(uint32_t layers, uint64_t hidden_bytes, uint64_t unit_bytes,
                                    bool recompute) {
  constexpr uint32_t kForward = 14;   // instructions of a layer's forward
  constexpr uint32_t kBackward = 28;  // and of its backward, after what is recomputed
  const uint32_t layer_backward = kBackward + (recompute ? kForward : 0);
  const uint32_t forward_end = layers * kForward + 4;
  const uint64_t factors[] = {1, 3, 1, 1, 4, 4, 1};  // norm, qkv, context, ... in hidden states
  std::vector<LiveRange> ranges;
  for (int i = 0; i < 3; ++i) ranges.push_back({unit_bytes * layers / 4 + 77, 0, kEndOfProgram});
  for (uint32_t layer = 0; layer < layers; ++layer) {
    const uint32_t forward = layer * kForward;
    const uint32_t backward = forward_end + (layers - 1 - layer) * layer_backward;
    const uint32_t gradients = backward + layer_backward - kBackward;
    const uint32_t end = gradients + kBackward - 1;
    ranges.push_back({hidden_bytes, forward, end});  // the layer's input
    for (uint32_t i = 0; i < 7; ++i) {
      const uint32_t used = gradients + kBackward - 4 * i - 1;  // by the op's backward
      const uint64_t bytes = factors[i] * hidden_bytes;
      ranges.push_back({bytes, forward + 2 * i, recompute ? forward + 2 * i + 2 : used});
      if (recompute) ranges.push_back({bytes, backward + 2 * i, used});
      ranges.push_back({hidden_bytes / 64 + 4 * i, forward + 2 * i, used});  // statistics
      ranges.push_back({bytes, used - 1, used + 2});                         // the gradient that flows on
    }
    const uint32_t prefetch = layer + 1 < layers ? backward - layer_backward : backward - 2;
    ranges.push_back({unit_bytes, layer == 0 ? 0 : forward - kForward, forward + kForward - 1});
    ranges.push_back({unit_bytes, prefetch, end});
    ranges.push_back({unit_bytes, gradients, end + 7});  // its gradient, until the reduction is done
  }
  return ranges;
}

// The least height over all orders of placing at the lowest free offset. That is the optimum: put the buffers
// of an optimal plan in order of their offsets, and none ends up higher than it was.
uint64_t OptimalBytes(const std::vector<LiveRange>& ranges, uint64_t alignment) {
  std::vector<size_t> order(ranges.size());
  std::iota(order.begin(), order.end(), size_t{0});
  uint64_t best = ~uint64_t{0};
  std::vector<uint64_t> begin(ranges.size());
  do {
    uint64_t height = 0;
    for (size_t k = 0; k < order.size(); ++k) {
      const LiveRange& range = ranges[order[k]];
      const uint64_t size = (range.size + alignment - 1) / alignment * alignment;
      uint64_t offset = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t j = 0; j < k; ++j) {
          const LiveRange& other = ranges[order[j]];
          const uint64_t other_end = begin[order[j]] + (other.size + alignment - 1) / alignment * alignment;
          const bool same_time = range.first <= other.last && other.first <= range.last;
          if (same_time && offset < other_end && begin[order[j]] < offset + size) {
            offset = other_end;
            moved = true;
          }
        }
      }
      begin[order[k]] = offset;
      height = std::max(height, offset + size);
    }
    best = std::min(best, height);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(MemPlanTest, NothingNeedsNothing) {
  EXPECT_EQ(PlanAndCheck({}).arena_bytes, 0u);
  const MemoryPlan plan = PlanAndCheck({{0, 0, kEndOfProgram}, {0, 3, 4}});
  EXPECT_EQ(plan.arena_bytes, 0u);
  EXPECT_EQ(plan.offsets, (std::vector<uint64_t>{0, 0}));
}

TEST(MemPlanTest, BuffersApartInTimeShareMemory) {
  const MemoryPlan plan = PlanAndCheck({{1000, 0, 4}, {900, 5, 9}});
  EXPECT_EQ(plan.arena_bytes, 1024u);
  EXPECT_EQ(plan.offsets, (std::vector<uint64_t>{0, 0}));
}

TEST(MemPlanTest, LastIndexIsInclusive) {
  EXPECT_EQ(PlanAndCheck({{256, 0, 5}, {256, 5, 9}}).arena_bytes, 512u);
}

TEST(MemPlanTest, HonoursAlignment) {
  const std::vector<LiveRange> ranges = {{1, 0, 9}, {1, 0, 9}, {5000, 3, kEndOfProgram}};
  EXPECT_EQ(PlanAndCheck(ranges, 4096).arena_bytes, 4u * 4096);
  EXPECT_EQ(PlanAndCheck(ranges, 1).arena_bytes, 5002u);
}

TEST(MemPlanTest, BufferAtTheVeryEndOfTime) {
  EXPECT_EQ(PlanAndCheck({{256, kEndOfProgram, kEndOfProgram}, {256, 0, kEndOfProgram - 1}}).arena_bytes,
            256u);
}

TEST(MemPlanTest, RefusesBadInput) {
  EXPECT_EQ(PlanMemory({{{8, 0, 1}, {8, 5, 4}}}).status().message(),
            "buffer 1 ends at 4 before it begins at 5");
  EXPECT_EQ(PlanMemory({{{8, 0, 1}}}, 48).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(PlanMemory({{{8, 0, 1}}}, 0).status().code(), absl::StatusCode::kInvalidArgument);
  const uint64_t half = uint64_t{1} << 62;
  EXPECT_EQ(PlanMemory({{{half, 0, 1}, {half, 0, 1}, {1, 0, 1}}}).status().code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_EQ(PlanMemory({{{half, 0, 1}, {half, 1, 2}}}).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(PlanMemory({{{~uint64_t{0}, 0, 1}}}).status().code(), absl::StatusCode::kOutOfRange);
}

TEST(MemPlanTest, WhatIsEnoughIsNotImproved) {
  const std::vector<LiveRange> ranges = RandomRanges(1, 200, 100, 40, 10'000);
  const MemoryPlan best = *PlanMemory(ranges, 1);
  for (const uint64_t enough : {uint64_t{0}, best.arena_bytes, best.arena_bytes * 2, ~uint64_t{0}}) {
    const absl::StatusOr<MemoryPlan> plan = PlanMemory(ranges, 1, enough);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(ValidateMemoryPlan(ranges, plan->offsets, plan->arena_bytes, 1), absl::OkStatus());
    EXPECT_LE(plan->arena_bytes, std::max(enough, best.arena_bytes));
    EXPECT_GE(plan->arena_bytes, best.arena_bytes);
  }
}

TEST(MaxLiveBytesTest, NamesThePeak) {
  const LiveBytes peak = MaxLiveBytes({{{100, 0, 10}, {50, 3, 5}, {60, 5, 7}, {300, 8, 8}, {50, 11, 12}}}, 1);
  EXPECT_EQ(peak.bytes, 400u);
  EXPECT_EQ(peak.index, 8u);
  EXPECT_EQ(MaxLiveBytes({}).bytes, 0u);
  EXPECT_EQ(MaxLiveBytes({{{100, 2, 10}, {50, 3, 5}, {60, 5, 7}}}, 1).index, 5u);
}

TEST(LiveBytesAtEachTest, CountsBothEnds) {
  const std::vector<LiveRange> ranges = {{100, 1, 2}, {50, 2, 4}, {7, 6, 9}, {1, 0, kEndOfProgram}};
  EXPECT_EQ(LiveBytesAtEach(ranges, 8, 1), (std::vector<uint64_t>{1, 101, 151, 51, 51, 1, 8, 8}));
  EXPECT_EQ(LiveBytesAtEach(ranges, 2), (std::vector<uint64_t>{256, 512}));
  EXPECT_EQ(LiveBytesAtEach({}, 2), (std::vector<uint64_t>{0, 0}));
  EXPECT_TRUE(LiveBytesAtEach(ranges, 0).empty());
}

TEST(MemPlanTest, TinyInstancesAreOptimal) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const std::vector<LiveRange> ranges = RandomRanges(seed, 1 + seed % 7, 8, 5, 6);
    EXPECT_EQ(PlanAndCheck(ranges, 1).arena_bytes, OptimalBytes(ranges, 1)) << "seed " << seed;
  }
}

TEST(MemPlanTest, RandomInstancesAreValid) {
  for (uint64_t seed = 0; seed < 24; ++seed) {
    const size_t n = 10 + seed * 17;
    PlanAndCheck(RandomRanges(seed, n, 200, 1 + seed * 8, 100'000), seed % 2 ? 4096 : 256);
  }
}

TEST(MemPlanTest, PersistentBuffersCostExactlyTheirSize) {
  std::vector<LiveRange> ranges = RandomRanges(1, 200, 100, 40, 10'000);
  const uint64_t without = PlanAndCheck(ranges).arena_bytes;
  for (int i = 0; i < 50; ++i) ranges.push_back({1000, 0, kEndOfProgram});
  EXPECT_EQ(PlanAndCheck(ranges).arena_bytes, without + 50 * 1024);
}

// Comb-like lifetimes that leave holes behind an allocator that goes forward in time: small buffers pin the
// arena open while ever larger ones come.
TEST(MemPlanTest, FragmentationTrap) {
  std::vector<LiveRange> ranges;
  for (uint32_t i = 0; i < 200; ++i) {
    ranges.push_back({256 * (1 + i), 2 * i, 2 * i});
    ranges.push_back({256, 2 * i, 401});
  }
  const MemoryPlan plan = PlanAndCheck(ranges);
  EXPECT_EQ(plan.arena_bytes, plan.lower_bound);
}

TEST(MemPlanTest, TrainingStepsComeWithinAPercent) {
  for (int layers : {1, 2, 12, 80}) {
    for (uint64_t unit_bytes : {uint64_t{3} << 20, uint64_t{29} << 20}) {
      for (bool recompute : {false, true}) {
        const std::vector<LiveRange> ranges =
            TrainingStep(layers, 786'432 + 512 * layers, unit_bytes, recompute);
        const MemoryPlan plan = PlanAndCheck(ranges);
        EXPECT_LE(plan.arena_bytes, plan.lower_bound + plan.lower_bound / 100)
            << layers << " layers, units of " << unit_bytes << " bytes, recompute " << recompute;
      }
    }
  }
}

TEST(MemPlanTest, TheSamePlanEveryTime) {
  const std::vector<LiveRange> ranges = RandomRanges(3, 500, 300, 100, 50'000);
  const MemoryPlan plan = PlanAndCheck(ranges);
  EXPECT_EQ(PlanAndCheck(ranges).offsets, plan.offsets);
  // A number that must come out on every machine and with every standard library.
  uint64_t digest = 0;
  for (uint64_t offset : plan.offsets) digest = digest * 1'000'003 + offset;
  EXPECT_EQ(digest, 9860196671058229760u);
}

// Both ways of the placer (lists of neighbours; scanning the placed ones), with lifetimes short and long.
TEST(MemPlanTest, TwentyThousandBuffers) {
  PlanAndCheck(RandomRanges(4, 20'000, 20'000, 300, 1'000'000), 256, /*every_pair=*/false);
  PlanAndCheck(RandomRanges(5, 20'000, 20'000, 20'000, 1'000'000), 256, /*every_pair=*/false);
  PlanAndCheck(TrainingStep(640, 786'432, 3 << 20, true), 256, /*every_pair=*/false);
}

}  // namespace
}  // namespace ft
