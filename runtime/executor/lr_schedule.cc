#include "runtime/executor/lr_schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/did_you_mean.h"

namespace ft {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"constant", "linear", "cosine"};
constexpr std::array<std::string_view, 2> kWarmups = {"linear", "log"};
constexpr std::array<std::string_view, 2> kConventions = {"transformers", "deepspeed"};

template <typename Enum, size_t N>
absl::StatusOr<Enum> Parse(const char* what, std::string_view word,
                           const std::array<std::string_view, N>& names) {
  const auto found = std::find(names.begin(), names.end(), word);
  if (found != names.end()) return static_cast<Enum>(found - names.begin());
  return absl::InvalidArgumentError(
      UnknownName(what, word, std::vector<std::string_view>(names.begin(), names.end())));
}

// The part of the way from warmup_min_lr to the peak after `step` of `steps` steps.
double WarmupPart(LrSchedule::Warmup warmup, double step, double steps) {
  if (warmup == LrSchedule::Warmup::kLinear) return step / std::max(1.0, steps);
  return std::log(step + 1) / std::log(std::max(2.0, steps));
}

double Warm(const LrSchedule& schedule, double step, double steps) {
  const double part = WarmupPart(schedule.warmup, step, steps), least = schedule.warmup_min_lr;
  if (least == 0) return schedule.peak * part;
  return least + (schedule.peak - least) * part;
}

double Decayed(const LrSchedule& schedule, double factor) {
  if (schedule.min_lr == 0) return schedule.peak * factor;
  const double least = schedule.min_lr / schedule.peak;
  return schedule.peak * (factor * (1 - least) + least);
}

double Cosine(double progress) { return 0.5 * (1.0 + std::cos(std::numbers::pi * progress)); }

double AsTransformers(const LrSchedule& schedule, int64_t step) {
  const auto s = static_cast<double>(step), w = static_cast<double>(schedule.warmup_steps),
             n = static_cast<double>(schedule.total_steps);
  if (step < schedule.warmup_steps) return Warm(schedule, s, w);
  switch (schedule.kind) {
    case LrSchedule::Kind::kConstant:
      return schedule.peak;
    case LrSchedule::Kind::kLinear:
      return Decayed(schedule, std::max(0.0, (n - s) / std::max(1.0, n - w)));
    case LrSchedule::Kind::kCosine:
      break;
  }
  return Decayed(schedule, std::max(0.0, Cosine((s - w) / std::max(1.0, n - w))));
}

double AsDeepSpeed(const LrSchedule& schedule, int64_t step) {
  const bool is_cosine = schedule.kind == LrSchedule::Kind::kCosine, warms = schedule.warmup_steps > 0;
  if (step == 0 && warms) return is_cosine ? 0 : schedule.warmup_min_lr;
  const auto i = static_cast<double>(std::max<int64_t>(0, step - 1)),
             w = warms ? std::max(2.0, static_cast<double>(schedule.warmup_steps)) : 0.0,
             n = static_cast<double>(schedule.total_steps);
  if (i < w) return Warm(schedule, i, w);
  const double rest = std::max(1.0, n - w);
  if (is_cosine) return Decayed(schedule, Cosine(std::min(1.0, (i - w + 1) / rest)));
  if (schedule.kind == LrSchedule::Kind::kConstant) return schedule.peak;
  return Decayed(schedule, std::clamp((n - i) / rest, 0.0, 1.0));
}

}  // namespace

double LrSchedule::At(int64_t step) const {
  return convention == Convention::kDeepSpeed ? AsDeepSpeed(*this, step) : AsTransformers(*this, step);
}

absl::Status LrSchedule::Check() const {
  if (!(peak >= 0) || !std::isfinite(peak))
    return absl::InvalidArgumentError(absl::StrFormat("lr is %g; expected 0 or more", peak));
  if (!(min_lr >= 0) || min_lr > peak) {
    return absl::InvalidArgumentError(
        absl::StrFormat("min_lr is %g; expected 0 or more, not above lr, which is %g", min_lr, peak));
  }
  if (!(warmup_min_lr >= 0) || warmup_min_lr > peak) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "warmup_min_lr is %g; expected 0 or more, not above lr, which is %g", warmup_min_lr, peak));
  }
  if (warmup_steps < 0)
    return absl::InvalidArgumentError(
        absl::StrFormat("warmup_steps is %d; expected 0 or more", warmup_steps));
  return absl::OkStatus();
}

absl::StatusOr<LrSchedule::Kind> ParseLrScheduleKind(std::string_view word) {
  return Parse<LrSchedule::Kind>("lr_schedule", word, kNames);
}

absl::StatusOr<LrSchedule::Warmup> ParseWarmup(std::string_view word) {
  return Parse<LrSchedule::Warmup>("warmup_type", word, kWarmups);
}

absl::StatusOr<LrSchedule::Convention> ParseLrConvention(std::string_view word) {
  return Parse<LrSchedule::Convention>("lr_convention", word, kConventions);
}

std::string_view Name(LrSchedule::Kind kind) { return kNames[static_cast<size_t>(kind)]; }
std::string_view Name(LrSchedule::Warmup warmup) { return kWarmups[static_cast<size_t>(warmup)]; }
std::string_view Name(LrSchedule::Convention convention) {
  return kConventions[static_cast<size_t>(convention)];
}

int64_t WarmupSteps(double ratio, int64_t total_steps) {
  return static_cast<int64_t>(std::ceil(static_cast<double>(total_steps) * ratio));
}

}  // namespace ft
