#include "runtime/executor/training_settings.h"

#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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

absl::Status Read(const proto::Plan& plan, const char* name, int64_t least, std::optional<int64_t>& value) {
  const proto::Attribute* setting = Find(plan, name);
  if (setting == nullptr) return absl::OkStatus();
  if (setting->value_case() == proto::Attribute::kI) {
    value = setting->i();
  } else {
    constexpr double kExact = 9007199254740992;  // 2^53: a float knows whole numbers up to here
    std::optional<double> number;
    FT_RETURN_IF_ERROR(Read(plan, name, std::max(-kExact, static_cast<double>(least)), kExact, number));
    if (*number != std::floor(*number))
      return Refuse(name, absl::StrFormat("a whole number, got %g", *number));
    value = static_cast<int64_t>(*number);
  }
  return *value >= least ? absl::OkStatus()
                         : Refuse(name, absl::StrFormat("a whole number from %d, got %d", least, *value));
}

template <typename T>
absl::Status Read(const proto::Plan& plan, const char* name, absl::StatusOr<T> (*parse)(std::string_view),
                  std::optional<T>& value) {
  const proto::Attribute* word = Find(plan, name);
  if (word == nullptr) return absl::OkStatus();
  FT_ASSIGN_OR_RETURN(value, parse(word->s()));
  return absl::OkStatus();
}

template <typename T>
std::optional<T> Or(const std::optional<T>& first, const std::optional<T>& second) {
  return first.has_value() ? first : second;
}

constexpr double kMost = std::numeric_limits<float>::max();

}  // namespace

TrainingSettings TrainingSettings::Merge(const TrainingSettings& flags, const TrainingSettings& plan) {
  TrainingSettings merged{.lr = Or(flags.lr, plan.lr),
                          .lr_schedule = Or(flags.lr_schedule, plan.lr_schedule),
                          .min_lr = Or(flags.min_lr, plan.min_lr),
                          .warmup_steps = flags.warmup_steps,
                          .warmup_ratio = flags.warmup_ratio,
                          .steps = Or(flags.steps, plan.steps),
                          .seed = Or(flags.seed, plan.seed),
                          .max_bad_steps = Or(flags.max_bad_steps, plan.max_bad_steps),
                          .warmup = plan.warmup,
                          .warmup_min_lr = plan.warmup_min_lr,
                          .lr_convention = plan.lr_convention,
                          .global_batch = plan.global_batch};
  if (!flags.warmup_steps.has_value() && !flags.warmup_ratio.has_value()) {
    merged.warmup_steps = plan.warmup_steps;
    merged.warmup_ratio = plan.warmup_ratio;
  }
  return merged;
}

absl::StatusOr<LrSchedule> TrainingSettings::Schedule(int64_t total_steps) const {
  const double ratio = warmup_ratio.value_or(0);
  if (!(ratio >= 0 && ratio <= 1))
    return absl::InvalidArgumentError(absl::StrFormat("warmup_ratio is %g; expected 0 to 1", ratio));
  LrSchedule schedule;
  schedule.kind = lr_schedule.value_or(schedule.kind);
  schedule.peak = lr.value_or(schedule.peak);
  schedule.min_lr = min_lr.value_or(schedule.min_lr);
  schedule.warmup = warmup.value_or(schedule.warmup);
  schedule.warmup_min_lr = warmup_min_lr.value_or(schedule.warmup_min_lr);
  schedule.convention = lr_convention.value_or(schedule.convention);
  schedule.total_steps = total_steps;
  schedule.warmup_steps = warmup_steps.value_or(0) > 0 ? *warmup_steps : WarmupSteps(ratio, total_steps);
  FT_RETURN_IF_ERROR(schedule.Check());
  return schedule;
}

absl::StatusOr<TrainingSettings> TrainingSettingsOf(const proto::Plan& plan) {
  TrainingSettings settings;
  FT_RETURN_IF_ERROR(Read(plan, "lr", 0.0, kMost, settings.lr));
  FT_RETURN_IF_ERROR(Read(plan, "min_lr", 0.0, kMost, settings.min_lr));
  FT_RETURN_IF_ERROR(Read(plan, "warmup_ratio", 0.0, 1.0, settings.warmup_ratio));
  FT_RETURN_IF_ERROR(Read(plan, "warmup_steps", 0, settings.warmup_steps));
  FT_RETURN_IF_ERROR(Read(plan, "steps", 0, settings.steps));
  FT_RETURN_IF_ERROR(Read(plan, "seed", std::numeric_limits<int64_t>::min(), settings.seed));
  FT_RETURN_IF_ERROR(Read(plan, "max_bad_steps", 1, settings.max_bad_steps));
  FT_RETURN_IF_ERROR(Read(plan, "warmup_min_lr", 0.0, kMost, settings.warmup_min_lr));
  FT_RETURN_IF_ERROR(Read(plan, "global_batch", 0, settings.global_batch));
  FT_RETURN_IF_ERROR(Read(plan, "lr_schedule", ParseLrScheduleKind, settings.lr_schedule));
  FT_RETURN_IF_ERROR(Read(plan, "warmup_type", ParseWarmup, settings.warmup));
  FT_RETURN_IF_ERROR(Read(plan, "lr_convention", ParseLrConvention, settings.lr_convention));
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
  FT_RETURN_IF_ERROR(Read(plan, "loss_scale", 0.0, kMost, fixed));
  FT_RETURN_IF_ERROR(Read(plan, "initial_scale_power", 0.0, 127.0, power));
  FT_RETURN_IF_ERROR(Read(plan, "min_loss_scale", 0.0, kMost, least));
  if (fixed.value_or(0) > 0) return LossScaling{.initial = *fixed, .least = *fixed, .is_fixed = true};
  return LossScaling{.initial = std::exp2(power.value_or(16)), .least = least.value_or(0), .is_fixed = false};
}

}  // namespace ft
