#include "runtime/memplan/validator.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace ft {
namespace {

TEST(ValidatorTest, AcceptsWhatIsDisjoint) {
  const std::vector<LiveRange> ranges = {{256, 0, 3}, {256, 0, 3}, {512, 4, 9}, {0, 0, 9}};
  EXPECT_TRUE(ValidateMemoryPlan(ranges, {{0, 256, 0, 256}}, 512).ok());
}

TEST(ValidatorTest, NamesBothBuffersOfAClash) {
  const std::vector<LiveRange> ranges = {{256, 9, 9}, {300, 0, 3}, {256, 3, 5}};
  const absl::Status status = ValidateMemoryPlan(ranges, {{0, 0, 256}}, 1024);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status.message(),
            "memory plan: buffer 1 (live 0-3, bytes 0-299) and buffer 2 (live 3-5, bytes 256-511) share "
            "memory while "
            "both are live");
}

TEST(ValidatorTest, SeesClashesFromAboveFromBelowAndAtTheSameOffset) {
  EXPECT_FALSE(ValidateMemoryPlan({{{512, 0, 9}, {256, 1, 2}}}, {{0, 256}}, 512).ok());
  EXPECT_FALSE(ValidateMemoryPlan({{{256, 0, 9}, {512, 1, 2}}}, {{256, 0}}, 512).ok());
  EXPECT_FALSE(ValidateMemoryPlan({{{256, 0, 9}, {256, 9, 9}}}, {{0, 0}}, 512).ok());
}

TEST(ValidatorTest, RefusesOffsetsOutOfPlace) {
  EXPECT_EQ(ValidateMemoryPlan({{{8, 0, 1}}}, {{128}}, 512).message(),
            "memory plan: buffer 0 lies at 128, not a multiple of 256");
  EXPECT_EQ(ValidateMemoryPlan({{{300, 0, 1}}}, {{256}}, 512).message(),
            "memory plan: buffer 0 of 300 bytes at 256 leaves the arena of 512 bytes");
  EXPECT_FALSE(ValidateMemoryPlan({{{~uint64_t{0}, 0, 1}}}, {{256}}, 512).ok());
  EXPECT_EQ(ValidateMemoryPlan({{{8, 0, 1}}}, {}, 512).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ValidateMemoryPlan({{{8, 2, 1}}}, {{0}}, 512).code(), absl::StatusCode::kInvalidArgument);
}

// Random offsets, good and bad: the sweep must agree with looking at every pair.
TEST(ValidatorTest, AgreesWithEveryPair) {
  std::mt19937_64 random(1);
  int valid = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    std::vector<LiveRange> ranges;
    std::vector<uint64_t> offsets;
    for (int i = 0; i < 5; ++i) {
      const uint32_t first = random() % 12;
      ranges.push_back({random() % 4, first, first + static_cast<uint32_t>(random() % 4)});
      offsets.push_back(random() % 12);
    }
    bool clash = false;
    for (int i = 0; i < 5; ++i) {
      for (int j = 0; j < i; ++j) {
        clash |= ranges[i].first <= ranges[j].last && ranges[j].first <= ranges[i].last &&
                 ranges[i].size > 0 && ranges[j].size > 0 && offsets[i] < offsets[j] + ranges[j].size &&
                 offsets[j] < offsets[i] + ranges[i].size;
      }
    }
    EXPECT_EQ(ValidateMemoryPlan(ranges, offsets, 100, 1).ok(), !clash) << trial;
    valid += !clash;
  }
  EXPECT_GT(valid, 400);
  EXPECT_LT(valid, 3600);
}

}  // namespace
}  // namespace ft
