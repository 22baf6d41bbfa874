#include "runtime/executor/training_settings.h"

#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/run_settings.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

const proto::Attribute* Find(const proto::Plan& plan, const char* name) {
  for (const proto::Attribute& setting : plan.settings()) {
    if (setting.name() == name) return &setting;
  }
  return nullptr;
}

absl::Status Refuse(const char* name, const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat("setting '", name, "' of the plan: expected ", expected));
}

// A number from `least` to `most`; whole numbers may be written as floats.
absl::Status Read(const proto::Plan& plan, const char* name, double least, double most,
                  std::optional<double>& value) {
  const proto::Attribute* setting = Find(plan, name);
  if (setting == nullptr) return absl::OkStatus();
  if (setting->value_case() == proto::Attribute::kI) {
    value = static_cast<double>(setting->i());
  } else if (setting->value_case() == proto::Attribute::kF) {
    value = setting->f();
  } else {
    return Refuse(name, "a number");
  }
  if (*value >= least && *value <= most) return absl::OkStatus();
  return Refuse(name, absl::StrFormat("a number from %g to %g, got %g", least, most, *value));
}

absl::Status Read(const proto::Plan& plan, const char* name, const SettingValue<double>& of,
                  std::optional<double>& value) {
  return Read(plan, name, of.range.low, of.range.high, value);
}

absl::Status Read(const proto::Plan& plan, const char* name, const SettingValue<int64_t>& of,
                  std::optional<int64_t>& value) {
  const proto::Attribute* setting = Find(plan, name);
  if (setting == nullptr) return absl::OkStatus();
  if (setting->value_case() == proto::Attribute::kI) {
    value = setting->i();
  } else {
    constexpr auto kExact = static_cast<double>(kExactInteger);
    std::optional<double> number;
    FT_RETURN_IF_ERROR(Read(plan, name, std::max(-kExact, of.range.low), kExact, number));
    if (*number != std::floor(*number))
      return Refuse(name, absl::StrFormat("a whole number, got %g", *number));
    value = static_cast<int64_t>(*number);
  }
  if (static_cast<double>(*value) >= of.range.low) return absl::OkStatus();
  return Refuse(name, absl::StrFormat("a whole number from %.0f, got %d", of.range.low, *value));
}

absl::Status Read(const proto::Plan& plan, const char* name, const SettingValue<std::string>& of,
                  std::optional<std::string>& value) {
  const proto::Attribute* word = Find(plan, name);
  if (word == nullptr) return absl::OkStatus();
  const std::string mistake = of.set(word->s(), value.emplace());
  if (mistake.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("setting '", name, "' of the plan: ", mistake));
}

}  // namespace

TrainingSettings TrainingSettings::Merge(const TrainingSettings& flags, const TrainingSettings& plan) {
  TrainingSettings merged = plan;
  if (flags.warmup_steps.has_value() || flags.warmup_ratio.has_value()) {
    merged.warmup_steps.reset();
    merged.warmup_ratio.reset();
  }
#define FT_RUN(TYPE, NAME, ...) \
  if (flags.NAME.has_value()) merged.NAME = flags.NAME;
#include "runtime/base/settings.def"
  return merged;
}

absl::StatusOr<LrSchedule> TrainingSettings::Schedule(int64_t total_steps) const {
  const RunSettings usual;
  const double ratio = warmup_ratio.value_or(usual.warmup_ratio);
  if (!(ratio >= 0 && ratio <= 1))
    return absl::InvalidArgumentError(absl::StrFormat("warmup_ratio is %g; expected 0 to 1", ratio));
  LrSchedule schedule;
  FT_ASSIGN_OR_RETURN(schedule.kind, ParseLrScheduleKind(lr_schedule.value_or(usual.lr_schedule)));
  FT_ASSIGN_OR_RETURN(schedule.warmup, ParseWarmup(warmup_type.value_or(usual.warmup_type)));
  FT_ASSIGN_OR_RETURN(schedule.convention, ParseLrConvention(lr_convention.value_or(usual.lr_convention)));
  schedule.peak = lr.value_or(usual.lr);
  schedule.min_lr = min_lr.value_or(usual.min_lr);
  schedule.warmup_min_lr = warmup_min_lr.value_or(usual.warmup_min_lr);
  schedule.total_steps = total_steps;
  schedule.warmup_steps = warmup_steps.value_or(0) > 0 ? *warmup_steps : WarmupSteps(ratio, total_steps);
  FT_RETURN_IF_ERROR(schedule.Check());
  return schedule;
}

absl::StatusOr<TrainingSettings> TrainingSettingsOf(const proto::Plan& plan) {
  using namespace setting;
  TrainingSettings settings;
#define FT_RUN FT_PLANNED
#define FT_PLANNED(TYPE, NAME, DEFAULT, KEEP, VALUE, ...) \
  FT_RETURN_IF_ERROR(Read(plan, #NAME, VALUE, settings.NAME));
#include "runtime/base/settings.def"
  return settings;
}

absl::Status CheckGlobalBatch(const proto::Plan& plan, int world_size) {
  FT_ASSIGN_OR_RETURN(const TrainingSettings settings, TrainingSettingsOf(plan));
  const auto wanted = static_cast<double>(settings.global_batch.value_or(0));
  if (wanted == 0) return absl::OkStatus();
  const int64_t micro_steps = std::max<int64_t>(1, plan.micro_steps());
  // In doubles: a plan's numbers may be anything.
  const double of_rank = static_cast<double>(plan.batch()) * static_cast<double>(micro_steps);
  if (of_rank * world_size == wanted) return absl::OkStatus();
  std::string advice = "compile with another --micro-steps, --global-batch or model";
  if (const double ranks = wanted / of_rank; ranks >= 1 && ranks == std::floor(ranks))
    advice =
        absl::StrFormat("run %.0f ranks, or compile with another --micro-steps or --global-batch", ranks);
  return absl::InvalidArgumentError(
      absl::StrFormat("the plan was compiled for a global batch of %.0f sequences a step, but %d sequences x "
                      "%d micro-steps x %d "
                      "ranks are %.0f; %s",
                      wanted, plan.batch(), micro_steps, world_size, of_rank * world_size, advice));
}

absl::StatusOr<LossScaling> LossScalingOf(const proto::Plan& plan) {
  std::optional<double> fixed, power, least;
  FT_RETURN_IF_ERROR(Read(plan, "loss_scale", 0.0, kMostF32, fixed));
  FT_RETURN_IF_ERROR(Read(plan, "initial_scale_power", 0.0, 127.0, power));
  FT_RETURN_IF_ERROR(Read(plan, "min_loss_scale", 0.0, kMostF32, least));
  if (fixed.value_or(0) > 0) return LossScaling{.initial = *fixed, .least = *fixed, .is_fixed = true};
  return LossScaling{.initial = std::exp2(power.value_or(16)), .least = least.value_or(0), .is_fixed = false};
}

}  // namespace ft
