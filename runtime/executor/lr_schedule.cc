#include "runtime/executor/lr_schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/did_you_mean.h"

namespace ft {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"constant", "linear", "cosine"};

}  // namespace

double LrSchedule::At(int64_t step) const {
  const auto s = static_cast<double>(step), w = static_cast<double>(warmup_steps),
             n = static_cast<double>(total_steps);
  if (step < warmup_steps) return peak * (s / std::max(1.0, w));
  if (kind == Kind::kConstant) return peak;
  double factor;
  if (kind == Kind::kLinear) {
    factor = std::max(0.0, (n - s) / std::max(1.0, n - w));
  } else {
    const double progress = (s - w) / std::max(1.0, n - w);
    factor = std::max(0.0, 0.5 * (1.0 + std::cos(std::numbers::pi * progress)));
  }
  if (min_lr == 0) return peak * factor;
  const double least = min_lr / peak;
  return peak * (factor * (1 - least) + least);
}

absl::Status LrSchedule::Check() const {
  if (!(peak >= 0) || !std::isfinite(peak))
    return absl::InvalidArgumentError(absl::StrFormat("lr is %g; expected 0 or more", peak));
  if (!(min_lr >= 0) || min_lr > peak) {
    return absl::InvalidArgumentError(
        absl::StrFormat("min_lr is %g; expected 0 or more, not above lr, which is %g", min_lr, peak));
  }
  if (warmup_steps < 0)
    return absl::InvalidArgumentError(
        absl::StrFormat("warmup_steps is %d; expected 0 or more", warmup_steps));
  return absl::OkStatus();
}

absl::StatusOr<LrSchedule::Kind> ParseLrScheduleKind(std::string_view word) {
  const auto found = std::find(kNames.begin(), kNames.end(), word);
  if (found != kNames.end()) return static_cast<LrSchedule::Kind>(found - kNames.begin());
  return absl::InvalidArgumentError(
      UnknownName("lr_schedule", word, std::vector<std::string_view>(kNames.begin(), kNames.end())));
}

std::string_view Name(LrSchedule::Kind kind) { return kNames[static_cast<size_t>(kind)]; }

int64_t WarmupSteps(double ratio, int64_t total_steps) {
  return static_cast<int64_t>(std::ceil(static_cast<double>(total_steps) * ratio));
}

}  // namespace ft
