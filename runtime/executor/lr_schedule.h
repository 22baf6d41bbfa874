// The learning rate as a function of the optimizer steps applied so far.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ft {

// With w = warmup_steps, n = total_steps, s = steps applied so far, from 0, and a factor f(s) that multiplies
// `peak`:
//   s < w      f = s / w: the first step of a warm-up has the rate 0
//   constant   f = 1
//   linear     f = max(0, (n - s) / max(1, n - w))
//   cosine     f = max(0, (1 + cos(pi (s - w) / max(1, n - w))) / 2)
// which are the formulas of get_constant_schedule_with_warmup, get_linear_schedule_with_warmup and
// get_cosine_schedule_with_warmup in Hugging Face's transformers (optimization.py), evaluated in double in
// the same order. The decaying ones end at `min_lr` instead of 0: after the warm-up f becomes f (1 - m) + m
// with m = min_lr / peak, as in its get_cosine_with_min_lr_schedule_with_warmup.
struct LrSchedule {
  enum class Kind { kConstant, kLinear, kCosine };

  Kind kind = Kind::kConstant;
  double peak = 3e-4;
  double min_lr = 0;
  int64_t warmup_steps = 0;
  int64_t total_steps = 0;

  double At(int64_t step) const;

  // InvalidArgument for numbers that make no schedule: negative or not finite ones, min_lr above the peak.
  absl::Status Check() const;
};

// "constant", "linear" or "cosine"; InvalidArgument for any other word.
absl::StatusOr<LrSchedule::Kind> ParseLrScheduleKind(std::string_view word);
std::string_view Name(LrSchedule::Kind kind);

// Steps of a warm-up that is given as a part of the run: ceil(ratio x total), as transformers has it.
int64_t WarmupSteps(double ratio, int64_t total_steps);

}  // namespace ft
