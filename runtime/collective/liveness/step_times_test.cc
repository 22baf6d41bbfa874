#include "runtime/collective/liveness/step_times.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "absl/time/clock.h"
#include "runtime/collective/liveness/peer_monitor.h"
#include "runtime/collective/testing/test_world.h"

namespace ft {
namespace {

using testing::TestWorld;

// All ranks report steps 0 ... steps - 1, one step after the other; `at_zero` is called on rank 0 when all
// figures of a step have arrived.
void Report(int ranks, int64_t steps, const std::function<double(int rank, int64_t step)>& ms_of,
            const std::function<void(int64_t step, StepTimes& times)>& at_zero) {
  TestWorld(ranks).RunThreads([&](const Rendezvous& rendezvous) {
    auto monitor = PeerMonitor::Start(rendezvous).value();
    StepTimes& times = monitor->step_times();
    for (int64_t step = 0; step < steps; ++step) {
      times.Report(step, ms_of(rendezvous.rank(), step));
      const auto decide = [](const std::vector<std::string>&) { return std::string(); };
      ASSERT_TRUE(monitor->Agree("step", static_cast<uint64_t>(step), "", decide, absl::Minutes(1)).ok());
      if (rendezvous.rank() == 0) at_zero(step, times);
      if (rendezvous.rank() > 0) {
        EXPECT_FALSE(times.Newest().has_value());
      }
    }
    EXPECT_TRUE(monitor->Goodbye().ok());
  });
}

TEST(StepTimesTest, TheSpreadOfAStep) {
  const double ms[4] = {10, 40, 20, 30};
  Report(
      4, 6, [&](int rank, int64_t step) { return ms[(rank + step) % 4] + static_cast<double>(step); },
      [&](int64_t step, StepTimes& times) {
        const std::optional<StepSpread> spread = times.Newest();
        ASSERT_TRUE(spread.has_value());
        const auto added = static_cast<double>(step);
        EXPECT_EQ(spread->step, step);
        EXPECT_EQ(spread->min_ms, 10 + added);
        EXPECT_EQ(spread->mean_ms, 25 + added);
        EXPECT_EQ(spread->max_ms, 40 + added);
        EXPECT_EQ(spread->slowest_rank, (1 + 4 * 10 - step) % 4);
        EXPECT_FALSE(times.TakeSlow().has_value());
      });
}

TEST(StepTimesTest, AStepWithAMissingFigureIsPassedOver) {
  Report(
      3, 8,
      [](int rank, int64_t step) {
        const double nonsense[] = {-1, NAN, std::numeric_limits<double>::infinity()};
        return rank == 2 && step % 2 == 1 ? nonsense[step / 2 % 3] : 5.0;
      },
      [](int64_t step, StepTimes& times) { EXPECT_EQ(times.Newest()->step, step - step % 2); });
}

// Rank 2 of 4 takes twice the others' time from step 10 on.
TEST(StepTimesTest, ASlowRankIsNamedOnce) {
  int named = 0;
  Report(
      4, 60, [](int rank, int64_t step) { return rank == 2 && step >= 10 ? 240.0 : 110.0 + rank; },
      [&](int64_t step, StepTimes& times) {
        const std::optional<SlowRank> slow = times.TakeSlow();
        EXPECT_EQ(slow.has_value(), step == 19);
        if (!slow.has_value()) return;
        ++named;
        EXPECT_EQ(slow->rank, 2);
        EXPECT_EQ(slow->first_step, 10);
        EXPECT_EQ(slow->steps, 10);
        EXPECT_DOUBLE_EQ(slow->mean_ms, 240);
        EXPECT_DOUBLE_EQ(slow->median_mean_ms, 111);
      });
  EXPECT_EQ(named, 1);
}

TEST(StepTimesTest, OfTwoRanksTheOtherIsTheMeasure) {
  int named = -1;
  Report(
      2, 30, [](int rank, int64_t) { return rank == 1 ? 160.0 : 100.0; },
      [&](int64_t, StepTimes& times) {
        if (const auto slow = times.TakeSlow()) named = slow->rank;
      });
  EXPECT_EQ(named, 1);
}

TEST(StepTimesTest, HiccupsAndShortStepsNameNobody) {
  const auto nobody = [](int64_t, StepTimes& times) { EXPECT_FALSE(times.TakeSlow().has_value()); };
  // Nine in a row; turns; not slow enough; far slower in steps of a millisecond.
  Report(3, 60, [](int rank, int64_t step) { return rank == 1 && step % 10 != 0 ? 400.0 : 200.0; }, nobody);
  Report(3, 60, [](int rank, int64_t step) { return rank == step % 3 ? 400.0 : 200.0; }, nobody);
  Report(3, 60, [](int rank, int64_t) { return rank == 1 ? 299.0 : 200.0; }, nobody);
  Report(3, 60, [](int rank, int64_t) { return rank == 1 ? 10.0 : 1.0; }, nobody);
}

}  // namespace
}  // namespace ft
