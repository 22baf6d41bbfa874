#include "runtime/executor/lr_schedule.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace ft {
namespace {

using Kind = LrSchedule::Kind;

std::vector<double> Rates(const LrSchedule& schedule, int64_t steps) {
  std::vector<double> rates;
  for (int64_t step = 0; step < steps; ++step) rates.push_back(schedule.At(step));
  return rates;
}

void ExpectRates(const LrSchedule& schedule, const std::vector<double>& expected) {
  const std::vector<double> rates = Rates(schedule, static_cast<int64_t>(expected.size()));
  for (size_t step = 0; step < expected.size(); ++step) EXPECT_DOUBLE_EQ(rates[step], expected[step]) << step;
}

// Expected: what the functions of transformers 5.23.0 named in the header give with torch 2.15's LambdaLR,
// get_last_lr() before each step. Equal to 4 units in the last place: cos comes from another library.
TEST(LrScheduleTest, Linear) {
  ExpectRates({.kind = Kind::kLinear, .peak = 6e-4, .warmup_steps = 3, .total_steps = 10},
              {0.0, 0.00019999999999999998, 0.00039999999999999996, 0.0006, 0.0005142857142857142,
               0.00042857142857142855, 0.0003428571428571428, 0.0002571428571428571, 0.0001714285714285714,
               8.57142857142857e-05, 0.0});
  ExpectRates({.kind = Kind::kLinear, .peak = 0.1, .total_steps = 4},
              {0.1, 0.07500000000000001, 0.05, 0.025, 0.0});
}

TEST(LrScheduleTest, Cosine) {
  ExpectRates({.kind = Kind::kCosine, .peak = 6e-4, .warmup_steps = 3, .total_steps = 10},
              {0.0, 0.00019999999999999998, 0.00039999999999999996, 0.0006, 0.0005702906603707256,
               0.00048704694055762005, 0.0003667562801868943, 0.0002332437198131057, 0.00011295305944237995,
               2.9709339629274285e-05, 0.0});
}

TEST(LrScheduleTest, Constant) {
  ExpectRates({.peak = 6e-4, .warmup_steps = 3},
              {0.0, 0.00019999999999999998, 0.00039999999999999996, 0.0006, 0.0006});
  EXPECT_EQ(Rates({.peak = 0.3}, 2), (std::vector<double>{0.3, 0.3}));
}

TEST(LrScheduleTest, EndsAtTheLeastRate) {
  ExpectRates({.kind = Kind::kCosine, .peak = 6e-4, .min_lr = 6e-5, .warmup_steps = 2, .total_steps = 8},
              {0.0, 0.0003, 0.0006, 0.0005638268590217984, 0.00046499999999999997, 0.00033,
               0.00019500000000000005, 9.617314097820154e-05, 5.9999999999999995e-05});
  const LrSchedule linear = {.kind = Kind::kLinear, .peak = 0.2, .min_lr = 0.1, .total_steps = 4};
  ExpectRates(linear, {0.2, 0.175, 0.15, 0.125, 0.1});
}

TEST(LrScheduleTest, AWarmUpLongerThanTheRun) {
  ExpectRates({.kind = Kind::kLinear, .peak = 0.1, .warmup_steps = 5, .total_steps = 3},
              {0.0, 0.020000000000000004, 0.04000000000000001, 0.06});
}

TEST(LrScheduleTest, WarmUpAsAPartOfTheRun) {
  EXPECT_EQ(WarmupSteps(0.1, 100), 10);
  EXPECT_EQ(WarmupSteps(0.1, 101), 11);
  EXPECT_EQ(WarmupSteps(0, 100), 0);
}

TEST(LrScheduleTest, RefusesWhatIsNoSchedule) {
  EXPECT_TRUE(LrSchedule{.peak = 0}.Check().ok());
  for (const LrSchedule& bad :
       {LrSchedule{.peak = -1}, LrSchedule{.peak = std::numeric_limits<double>::quiet_NaN()},
        LrSchedule{.peak = 0.1, .min_lr = 0.2}, LrSchedule{.min_lr = -1}, LrSchedule{.warmup_steps = -1}}) {
    EXPECT_EQ(bad.Check().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(*ParseLrScheduleKind("cosine"), Kind::kCosine);
  EXPECT_EQ(std::string(ParseLrScheduleKind("cosin").status().message()),
            "unknown lr_schedule 'cosin', did you mean 'cosine'?");
}

}  // namespace
}  // namespace ft
