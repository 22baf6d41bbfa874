#include "runtime/executor/training_settings.h"

#include <gtest/gtest.h>

namespace ft {
namespace {

proto::Attribute* Add(proto::Plan& plan, const char* name) {
  proto::Attribute* setting = plan.add_settings();
  setting->set_name(name);
  return setting;
}

TEST(TrainingSettingsTest, AnEmptyPlanSaysNothing) {
  const auto settings = TrainingSettingsOf({});
  ASSERT_TRUE(settings.ok());
  const auto schedule = settings->Schedule(10);
  ASSERT_TRUE(schedule.ok());
  EXPECT_EQ(schedule->kind, LrSchedule::Kind::kConstant);
  EXPECT_EQ(schedule->At(0), 3e-4);
  EXPECT_FALSE(settings->steps.has_value());
  const auto scaling = LossScalingOf({});
  EXPECT_EQ(scaling->initial, 65536);
  EXPECT_EQ(scaling->least, 0);
}

TEST(TrainingSettingsTest, ReadsThePlan) {
  proto::Plan plan;
  Add(plan, "lr")->set_f(0.01);
  Add(plan, "lr_schedule")->set_s("cosine");
  Add(plan, "warmup_ratio")->set_f(0.25);
  Add(plan, "min_lr")->set_f(0.001);
  Add(plan, "steps")->set_f(20);  // ftc writes all numbers as floats
  Add(plan, "seed")->set_i(-7);
  Add(plan, "max_bad_steps")->set_i(5);
  Add(plan, "warmup_type")->set_s("log");
  Add(plan, "warmup_min_lr")->set_f(0.002);
  Add(plan, "lr_convention")->set_s("deepspeed");
  const auto settings = TrainingSettingsOf(plan);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->steps, 20);
  EXPECT_EQ(settings->seed, -7);
  EXPECT_EQ(settings->max_bad_steps, 5);
  const auto schedule = settings->Schedule(20);
  ASSERT_TRUE(schedule.ok());
  EXPECT_EQ(schedule->kind, LrSchedule::Kind::kCosine);
  EXPECT_EQ(schedule->warmup_steps, 5);
  EXPECT_EQ(schedule->min_lr, 0.001);
  EXPECT_EQ(schedule->total_steps, 20);
  EXPECT_EQ(schedule->warmup, LrSchedule::Warmup::kLog);
  EXPECT_EQ(schedule->warmup_min_lr, 0.002);
  EXPECT_EQ(schedule->convention, LrSchedule::Convention::kDeepSpeed);
  // They stay when flags change the rest.
  const auto merged = TrainingSettings::Merge({.lr = 0.5}, *settings).Schedule(20);
  EXPECT_EQ(merged->convention, LrSchedule::Convention::kDeepSpeed);
  EXPECT_EQ(merged->warmup_min_lr, 0.002);
}

TEST(TrainingSettingsTest, FlagsComeFirst) {
  const TrainingSettings plan = {.lr = 0.1, .min_lr = 0.05, .warmup_ratio = 0.5, .seed = 1};
  const TrainingSettings merged = TrainingSettings::Merge({.lr = 0.2, .warmup_steps = 3}, plan);
  EXPECT_EQ(merged.lr, 0.2);
  EXPECT_EQ(merged.min_lr, 0.05);
  EXPECT_EQ(merged.seed, 1);
  EXPECT_EQ(merged.warmup_steps, 3);
  EXPECT_FALSE(merged.warmup_ratio.has_value());
  EXPECT_EQ(TrainingSettings::Merge({}, plan).Schedule(10)->warmup_steps, 5);
  EXPECT_EQ(TrainingSettings::Merge({.warmup_steps = 0}, plan).Schedule(10)->warmup_steps, 0);
}

TEST(TrainingSettingsTest, RefusesWhatMakesNoSense) {
  for (const char* name : {"lr", "min_lr", "warmup_ratio", "warmup_steps", "steps", "max_bad_steps"}) {
    proto::Plan plan;
    Add(plan, name)->set_f(-1);
    const absl::Status status = TrainingSettingsOf(plan).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_NE(status.message().find(name), std::string::npos) << status;
  }
  proto::Plan plan;
  Add(plan, "steps")->set_f(2.5);
  EXPECT_FALSE(TrainingSettingsOf(plan).ok());
  plan.mutable_settings(0)->set_s("many");
  EXPECT_FALSE(TrainingSettingsOf(plan).ok());
  plan.mutable_settings(0)->set_name("lr_schedule");
  EXPECT_FALSE(TrainingSettingsOf(plan).ok());
  EXPECT_FALSE(TrainingSettings{.min_lr = 1}.Schedule(10).ok());  // above the default rate
}

TEST(TrainingSettingsTest, TheGlobalBatchIsThatOfTheRanks) {
  proto::Plan plan;
  plan.set_batch(4);
  plan.set_micro_steps(2);
  EXPECT_TRUE(CheckGlobalBatch(plan, 3).ok());
  proto::Attribute* global_batch = Add(plan, "global_batch");
  global_batch->set_f(0);
  EXPECT_TRUE(CheckGlobalBatch(plan, 3).ok());
  global_batch->set_f(32);
  EXPECT_TRUE(CheckGlobalBatch(plan, 4).ok());
  const absl::Status status = CheckGlobalBatch(plan, 3);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      status.message(),
      "the plan was compiled for a global batch of 32 sequences a step, but 4 sequences x 2 micro-steps "
      "x 3 ranks are 24; run 4 ranks, or compile with another --micro-steps or --global-batch");
  global_batch->set_f(20);  // no number of ranks has it
  EXPECT_NE(CheckGlobalBatch(plan, 2).message().find("compile with another"), std::string::npos);
  global_batch->set_f(2.5);
  EXPECT_FALSE(CheckGlobalBatch(plan, 2).ok());
}

TEST(TrainingSettingsTest, LossScaling) {
  proto::Plan plan;
  Add(plan, "initial_scale_power")->set_f(10);
  Add(plan, "min_loss_scale")->set_f(2);
  EXPECT_EQ(LossScalingOf(plan)->initial, 1024);
  EXPECT_EQ(LossScalingOf(plan)->least, 2);
  Add(plan, "loss_scale")->set_f(128);
  EXPECT_EQ(LossScalingOf(plan)->initial, 128);
  EXPECT_EQ(LossScalingOf(plan)->least, 128);  // fixed: no overflow ever lowers it
}

}  // namespace
}  // namespace ft
