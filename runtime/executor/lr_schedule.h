// The learning rate as a function of the optimizer steps applied so far.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ft {

// With p = peak, v = warmup_min_lr, w = warmup_steps, n = total_steps, m = min_lr / p and s = steps applied
// so far, from 0, the rate under kTransformers is
//   s < w      v + (p - v) g(s), where g is s / w (linear) or log(s + 1) / log(max(2, w)) (log)
//   constant   p
//   linear     p (f (1 - m) + m), f = max(0, (n - s) / max(1, n - w))
//   cosine     p (f (1 - m) + m), f = max(0, (1 + cos(pi (s - w) / max(1, n - w))) / 2)
// which for v = m = 0 and linear warm-up are the formulas of get_constant_schedule_with_warmup,
// get_linear_schedule_with_warmup and get_cosine_schedule_with_warmup in Hugging Face's transformers
// (optimization.py), evaluated in double in the same order, with m those of its
// get_cosine_with_min_lr_schedule_with_warmup.
//
// kDeepSpeed is what DeepSpeed's WarmupLR, WarmupDecayLR and WarmupCosineLR (runtime/lr_schedules.py) make of
// the same numbers. Its engine advances the schedule after a step and begins it one step before the first, so
// with i = s - 1 and w at least 2 (unless it is 0: no warm-up)
//   s = 0      v; cosine: 0
//   i < w      v + (p - v) g(i), where g is i / w or log(i + 1) / log(w)
//   constant   p
//   linear     p (f (1 - m) + m), f = max(0, (n - i) / max(1, n - w))
//   cosine     p (f (1 - m) + m), f = (1 + cos(pi min(1, (i - w + 1) / max(1, n - w)))) / 2
struct LrSchedule {
  enum class Kind { kConstant, kLinear, kCosine };
  enum class Warmup { kLinear, kLog };
  enum class Convention { kTransformers, kDeepSpeed };

  Kind kind = Kind::kConstant;
  double peak = 3e-4;
  double min_lr = 0;
  int64_t warmup_steps = 0;
  int64_t total_steps = 0;
  Warmup warmup = Warmup::kLinear;
  double warmup_min_lr = 0;
  Convention convention = Convention::kTransformers;

  double At(int64_t step) const;

  // InvalidArgument for numbers that make no schedule: negative or not finite ones, min_lr or warmup_min_lr
  // above the peak.
  absl::Status Check() const;
};

// "constant", "linear" or "cosine"; InvalidArgument for any other word.
absl::StatusOr<LrSchedule::Kind> ParseLrScheduleKind(std::string_view word);
std::string_view Name(LrSchedule::Kind kind);

// "linear" or "log"; "transformers" or "deepspeed". Errors: as ParseLrScheduleKind.
absl::StatusOr<LrSchedule::Warmup> ParseWarmup(std::string_view word);
absl::StatusOr<LrSchedule::Convention> ParseLrConvention(std::string_view word);
std::string_view Name(LrSchedule::Warmup warmup);
std::string_view Name(LrSchedule::Convention convention);

// Steps of a warm-up that is given as a part of the run: ceil(ratio x total), as transformers has it.
int64_t WarmupSteps(double ratio, int64_t total_steps);

}  // namespace ft
