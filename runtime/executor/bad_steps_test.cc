#include "runtime/executor/bad_steps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace ft {
namespace {

using Verdict = BadSteps::Verdict;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(BadStepsTest, EndsAfterSomeInARow) {
  BadSteps steps(3, 0);
  for (const double loss : {2.0, kNan, kInf, 2.0, -kInf, kNan})
    EXPECT_EQ(steps.Add({.loss = loss, .grad_norm = 1}),
              std::isfinite(loss) ? Verdict::kApplied : Verdict::kSkipped);
  EXPECT_EQ(steps.Add({.loss = 1, .grad_norm = kInf}), Verdict::kEnd);
}

TEST(BadStepsTest, AStepThatCountsNothingIsNoBadOne) {
  BadSteps steps(2, 0);
  EXPECT_EQ(steps.Add({.loss = kNan, .grad_norm = kNan}), Verdict::kSkipped);
  const StepNumbers nothing = {.loss = kNan, .grad_norm = kNan, .loss_scale = 8, .counts_nothing = true};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(steps.Add(nothing), Verdict::kSkipped);
  EXPECT_EQ(steps.Describe(6, 10, nothing), "step 7/10: none of its targets counts: step not applied");
  EXPECT_EQ(steps.bad_in_a_row(), 1);
  EXPECT_EQ(steps.Add({.loss = kNan, .grad_norm = kNan}), Verdict::kEnd);
}

TEST(BadStepsTest, OneMayBeTooMany) {
  BadSteps steps(1, 0);
  EXPECT_EQ(steps.Add({.loss = kNan, .grad_norm = kNan}), Verdict::kEnd);
}

TEST(BadStepsTest, OverflowsOfAScaledLossAreExpected) {
  BadSteps steps(2, 1);
  for (int i = 1; i < BadSteps::kMaxOverflows; ++i)
    ASSERT_EQ(steps.Add({.loss = 2, .grad_norm = kInf, .loss_scale = 65536}), Verdict::kSkipped) << i;
  EXPECT_EQ(steps.Add({.loss = 2, .grad_norm = kInf, .loss_scale = 65536}), Verdict::kEnd);
}

TEST(BadStepsTest, AtTheLeastScaleAnOverflowIsABadStep) {
  BadSteps steps(2, 1);
  EXPECT_EQ(steps.Add({.loss = 2, .grad_norm = kInf, .loss_scale = 2}), Verdict::kSkipped);
  EXPECT_EQ(steps.Add({.loss = 2, .grad_norm = kInf, .loss_scale = 1}), Verdict::kSkipped);
  EXPECT_EQ(steps.Add({.loss = 2, .grad_norm = kInf, .loss_scale = 1}), Verdict::kEnd);
}

TEST(BadStepsTest, ALossThatIsNotFiniteIsNoOverflow) {
  BadSteps steps(2, 1);
  EXPECT_EQ(steps.Add({.loss = kNan, .grad_norm = kInf, .loss_scale = 65536}), Verdict::kSkipped);
  EXPECT_EQ(steps.Add({.loss = 2, .grad_norm = kInf, .loss_scale = 65536}), Verdict::kSkipped);
  EXPECT_EQ(steps.Add({.loss = kNan, .grad_norm = kInf, .loss_scale = 32768}), Verdict::kEnd);
}

TEST(BadStepsTest, NamesStepAndNumber) {
  BadSteps steps(3, 0);
  StepNumbers numbers = {.loss = kNan, .grad_norm = kNan};
  steps.Add(numbers);
  EXPECT_EQ(steps.Describe(12, 60, numbers),
            "step 13/60: loss nan: step not applied (1 in a row, the run ends at 3)");
  numbers.loss = 1;
  numbers.grad_norm = kInf;
  steps.Add(numbers);
  EXPECT_EQ(steps.Describe(13, 60, numbers),
            "step 14/60: gradient norm inf: step not applied (2 in a row, the run ends at 3)");
  steps.Add(numbers);
  EXPECT_EQ(steps.Describe(14, 60, numbers),
            "step 15/60: gradient norm inf: step not applied, 3 in a row: training has diverged; try a "
            "smaller --lr");
}

TEST(BadStepsTest, TheFirstInARowBeginsIt) {
  BadSteps steps(4, 1);
  const StepNumbers good = {.loss = 1, .grad_norm = 1}, bad = {.loss = kNan, .grad_norm = 1};
  const StepNumbers overflow = {.loss = 1, .grad_norm = kInf, .loss_scale = 8};
  const StepNumbers nothing = {.loss = kNan, .grad_norm = kNan, .counts_nothing = true};
  std::string begins;
  for (const StepNumbers& numbers : {good, bad, bad, nothing, overflow, bad, good, overflow, bad, bad}) {
    steps.Add(numbers);
    begins += steps.begins() ? '1' : '0';
  }
  EXPECT_EQ(begins, "0100000010");
}

// Where the run before it began to go wrong is nowhere any more.
TEST(BadStepsTest, ARunThatGoesOnInARowBeginsItAnew) {
  BadSteps steps(4, 1);
  steps.Restore(1, 0);
  const StepNumbers good = {.loss = 1, .grad_norm = 1}, bad = {.loss = kNan, .grad_norm = 1};
  std::string begins;
  for (const StepNumbers& numbers : {bad, bad, good, bad, bad}) {
    steps.Add(numbers);
    begins += steps.begins() ? '1' : '0';
  }
  EXPECT_EQ(begins, "10010");
}

TEST(BadStepsTest, TheOverflowThatEndsTheRunBeginsIt) {
  BadSteps steps(2, 1);
  const StepNumbers overflow = {.loss = 1, .grad_norm = kInf, .loss_scale = 8};
  for (int i = 1; i <= BadSteps::kMaxOverflows; ++i) {
    steps.Add(overflow);
    EXPECT_EQ(steps.begins(), i == BadSteps::kMaxOverflows) << i;
  }
}

TEST(BadStepsTest, AnOverflowNamesTheScale) {
  BadSteps steps(3, 0);
  const StepNumbers numbers = {.loss = 2, .grad_norm = kInf, .loss_scale = 65536};
  steps.Add(numbers);
  EXPECT_EQ(
      steps.Describe(0, 60, numbers),
      "step 1/60: gradient norm inf at loss scale 65536: step not applied (1 in a row, the run ends at 100)");
}

}  // namespace
}  // namespace ft
