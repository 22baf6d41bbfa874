#include "compiler/tune/extrapolate.h"

#include "gtest/gtest.h"

namespace ft::compiler {
namespace {

Sample sampleOf(double seconds, uint64_t bytes, std::vector<Turns> turns) {
  Sample sample;
  sample.trial = {.mesh = {.replica = 1, .shard = 4}, .seconds = seconds, .arenaBytes = bytes};
  sample.turns = std::move(turns);
  return sample;
}

TEST(ExtrapolateTest, EachFurtherLayerAddsAsMuch) {
  const TuneTrial all = extrapolated(sampleOf(10, 1000, {}), sampleOf(12, 1100, {}), 3, 32);
  EXPECT_DOUBLE_EQ(all.seconds, 10 + 29 * 2);
  EXPECT_EQ(all.arenaBytes, 1000u + 29 * 100);
}

// Of a layer two matrices of a second each: with three layers a rank has two of them, with four still two,
// with 32 it has 16. Beside them a layer takes two seconds.
TEST(ExtrapolateTest, WhatRanksDoInTurnGrowsBySteps) {
  const Sample less = sampleOf(6 + 2, 0, {{6, 1}}), more = sampleOf(8 + 2, 0, {{8, 1}});
  EXPECT_DOUBLE_EQ(extrapolated(less, more, 3, 32).seconds, 32 * 2 + 16);
  EXPECT_DOUBLE_EQ(extrapolated(less, more, 3, 5).seconds, 5 * 2 + 3);
  EXPECT_DOUBLE_EQ(extrapolated(less, more, 3, 4).seconds, more.trial.seconds);
}

TEST(ExtrapolateTest, EachGroupHasItsOwnTurns) {
  const Sample less = sampleOf(3 + 1 + 20, 0, {{3, 1}, {6, 10}}),
               more = sampleOf(4 + 1 + 20, 0, {{4, 1}, {8, 10}});
  EXPECT_DOUBLE_EQ(extrapolated(less, more, 3, 10).seconds, 10 + 3 + 50);
}

} // namespace
} // namespace ft::compiler
