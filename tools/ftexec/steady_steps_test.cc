#include "tools/ftexec/steady_steps.h"

#include "gtest/gtest.h"

namespace ft {
namespace {

StepMetrics Step(double ms, double exposed_ms) { return {.step_ms = ms, .exposed_ms = exposed_ms}; }

TEST(SteadyStepsTest, LeavesOutTheFirstAndWhatIsTraced) {
  SteadySteps times(/*traced_steps=*/0), traced(/*traced_steps=*/8);
  EXPECT_EQ(times.MedianMs(), 0);
  for (int i = 0; i < 12; ++i) {
    const StepMetrics step = Step(i < SteadySteps::kSettling ? 1000 : i, i < 8 ? 50 : i / 4.0);
    times.Add(step);
    traced.Add(step);
  }
  EXPECT_EQ(times.counted(), 7);
  EXPECT_EQ(times.MedianMs(), 8);  // of 5 ... 11
  EXPECT_EQ(traced.counted(), 4);
  EXPECT_EQ(traced.MedianExposedMs(), 2.5);  // the upper one of 8 ... 11, over 4
}

TEST(SteadyStepsTest, LeavesOutTheStepThatIsObserved) {
  SteadySteps times(0);
  times.LeaveOut(19);
  for (int64_t i = 0; i < 20; ++i) times.Add({.step = i, .step_ms = i == 19 ? 1000.0 : 1.0});
  EXPECT_TRUE(times.AreComparable());
  EXPECT_EQ(times.counted(), 14);
  EXPECT_EQ(times.first_number(), 6);
  EXPECT_EQ(times.last_number(), 19);
}

TEST(SteadyStepsTest, KeepsTheLast) {
  SteadySteps times(0);
  for (int i = 0; i < 1000; ++i) times.Add(Step(i < 700 ? 1 : 3, 0));
  EXPECT_EQ(times.counted(), 995);
  EXPECT_EQ(times.MedianMs(), 3);
}

TEST(SteadyStepsTest, SaysNothingOfAnotherMachine) {
  proto::Plan plan;
  SteadySteps times(0);
  for (int i = 0; i < 20; ++i) times.Add(Step(1, 0));
  EXPECT_EQ(PredictedLine(times, nullptr, plan, BoundPlan(), /*on_gpu=*/false), "");  // no target
  plan.mutable_target()->set_cuda(true);
  EXPECT_EQ(PredictedLine(times, nullptr, plan, BoundPlan(), /*on_gpu=*/false), "");
}

}  // namespace
}  // namespace ft
