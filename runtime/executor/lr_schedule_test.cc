#include "runtime/executor/lr_schedule.h"

#include <gtest/gtest.h>

#include <cmath>
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

// Expected: what the classes of DeepSpeed 0.19.6's runtime/lr_schedules.py named in the header leave in the
// optimizer before each step, the engine's step() after each. Some end beyond total_steps.
constexpr auto kDeepSpeed = LrSchedule::Convention::kDeepSpeed;
constexpr auto kLog = LrSchedule::Warmup::kLog;

TEST(LrScheduleTest, DeepSpeedsWarmupLr) {
  ExpectRates({.peak = 6e-4, .warmup_steps = 4, .warmup = kLog, .convention = kDeepSpeed},
              {0.0, 0.0, 0.0003, 0.0004754887502163468, 0.0006, 0.0006, 0.0006});
  ExpectRates({.peak = 6e-4, .warmup_steps = 4, .warmup_min_lr = 1e-4, .convention = kDeepSpeed},
              {0.0001, 0.0001, 0.000225, 0.00034999999999999994, 0.0004749999999999999, 0.0006, 0.0006});
}

TEST(LrScheduleTest, DeepSpeedsWarmupDecayLr) {
  ExpectRates({.kind = Kind::kLinear,
               .peak = 6e-4,
               .min_lr = 1e-4,
               .warmup_steps = 3,
               .total_steps = 8,
               .warmup = kLog,
               .warmup_min_lr = 1e-4,
               .convention = kDeepSpeed},
              {0.0001, 0.0001, 0.0004154648767857286, 0.0006, 0.0006, 0.0005, 0.0003999999999999999, 0.0003,
               0.00019999999999999998, 0.0001, 0.0001});
  ExpectRates(
      {.kind = Kind::kLinear, .peak = 6e-4, .warmup_steps = 3, .total_steps = 8, .convention = kDeepSpeed},
      {0.0, 0.0, 0.00019999999999999998, 0.00039999999999999996, 0.0006, 0.00047999999999999996,
       0.00035999999999999997, 0.00023999999999999998, 0.00011999999999999999, 0.0, 0.0});
}

TEST(LrScheduleTest, DeepSpeedsWarmupCosineLr) {
  ExpectRates({.kind = Kind::kCosine,
               .peak = 6e-4,
               .min_lr = 6e-8,
               .warmup_steps = 3,
               .total_steps = 8,
               .warmup = kLog,
               .warmup_min_lr = 1.5e-4,
               .convention = kDeepSpeed},
              {0.0, 0.00015, 0.00043391838910715577, 0.0006, 0.000542710827802653, 0.00039272582780265294,
               0.00020733417219734703, 5.734917219734704e-05, 6e-08, 6e-08, 6e-08});
  // A warm-up of one step is one of two.
  ExpectRates({.kind = Kind::kCosine,
               .peak = 6e-4,
               .min_lr = 6e-5,
               .warmup_steps = 1,
               .total_steps = 8,
               .convention = kDeepSpeed},
              {0.0, 0.0, 0.0003, 0.0005638268590217984, 0.00046499999999999997, 0.00033,
               0.00019500000000000005, 9.617314097820154e-05, 5.9999999999999995e-05});
  ExpectRates({.kind = Kind::kCosine,
               .peak = 6e-4,
               .min_lr = 6e-8,
               .warmup_steps = 3,
               .total_steps = 3,
               .warmup = kLog,
               .convention = kDeepSpeed},
              {0.0, 0.0, 0.00037855785214287434, 0.0006, 6e-08});
  // No warm-up was asked for.
  EXPECT_EQ((LrSchedule{.peak = 0.5, .convention = kDeepSpeed}).At(0), 0.5);
}

TEST(LrScheduleTest, OtherWarmUpsOfOurOwn) {
  const double half = std::log(2) / std::log(4);
  ExpectRates({.peak = 0.5, .warmup_steps = 4, .warmup = kLog, .warmup_min_lr = 0.25},
              {0.25, 0.25 + 0.25 * half, 0.25 + 0.25 * std::log(3) / std::log(4), 0.5, 0.5});
  ExpectRates({.peak = 0.5, .warmup_steps = 2, .warmup_min_lr = 0.25}, {0.25, 0.375, 0.5});
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
        LrSchedule{.peak = 0.1, .min_lr = 0.2}, LrSchedule{.min_lr = -1}, LrSchedule{.warmup_steps = -1},
        LrSchedule{.peak = 0.1, .warmup_min_lr = 0.2}, LrSchedule{.warmup_min_lr = -1}}) {
    EXPECT_EQ(bad.Check().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(*ParseLrScheduleKind("cosine"), Kind::kCosine);
  EXPECT_EQ(*ParseWarmup("log"), kLog);
  EXPECT_EQ(*ParseLrConvention("deepspeed"), kDeepSpeed);
  EXPECT_EQ(std::string(ParseWarmup("lag").status().message()),
            "unknown warmup_type 'lag', did you mean 'log'?");
  EXPECT_EQ(std::string(ParseLrScheduleKind("cosin").status().message()),
            "unknown lr_schedule 'cosin', did you mean 'cosine'?");
}

}  // namespace
}  // namespace ft
