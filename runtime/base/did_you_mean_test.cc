#include "runtime/base/did_you_mean.h"

#include <string_view>
#include <vector>

#include "gtest/gtest.h"

namespace ft {
namespace {

const std::vector<std::string_view> kStrategies = {"no_shard", "shard_grad_op", "full_shard"};

TEST(NearestNameTest, FindsTypingMistakesOnly) {
  EXPECT_EQ(NearestName("ful_shard", kStrategies), "full_shard");
  EXPECT_EQ(NearestName("no-shard", kStrategies), "no_shard");
  EXPECT_EQ(NearestName("full_shard", kStrategies), "full_shard");
  EXPECT_EQ(NearestName("pipeline", kStrategies), "");
  EXPECT_EQ(NearestName("", kStrategies), "");
  EXPECT_EQ(NearestName("x", {}), "");
}

TEST(NearestNameTest, ASwapOfNeighboursIsOneEdit) {
  const std::string_view presets[] = {"debug", "124m"};
  EXPECT_EQ(NearestName("debgu", presets), "debug");
  EXPECT_EQ(NearestName("edbug", presets), "debug");
  EXPECT_EQ(NearestName("214m", presets), "124m");
  EXPECT_EQ(NearestName("ebdgu", presets), "");  // two edits in five characters
}

TEST(NearestNameTest, TheFirstOfEqualsWins) {
  const std::vector<std::string_view> equals = {"abx", "aby"};
  EXPECT_EQ(NearestName("abz", equals), "abx");
}

TEST(UnknownNameTest, SuggestsOrLists) {
  EXPECT_EQ(UnknownName("strategy", "ful_shard", kStrategies),
            "unknown strategy 'ful_shard', did you mean 'full_shard'?");
  EXPECT_EQ(UnknownName("strategy", "pipeline", kStrategies),
            "unknown strategy 'pipeline', expected one of: no_shard, shard_grad_op, full_shard");
}

}  // namespace
}  // namespace ft
