#include "runtime/executor/bad_steps.h"

#include <cmath>

#include "absl/strings/str_format.h"

namespace ft {

bool BadSteps::IsOverflow(const StepNumbers& numbers) const {
  return numbers.loss_scale.has_value() && *numbers.loss_scale > min_scale_ && std::isfinite(numbers.loss);
}

BadSteps::Verdict BadSteps::Add(const StepNumbers& numbers) {
  begins_ = false;
  if (numbers.counts_nothing) return Verdict::kSkipped;
  if (std::isfinite(numbers.loss) && std::isfinite(numbers.grad_norm)) {
    bad_ = overflows_ = 0;
    told_ = false;
    return Verdict::kApplied;
  }
  if (IsOverflow(numbers)) {
    begins_ = ++overflows_ >= kMaxOverflows;
    return begins_ ? Verdict::kEnd : Verdict::kSkipped;
  }
  overflows_ = 0;
  begins_ = !told_;
  told_ = true;
  ++bad_;
  return bad_ < max_in_a_row_ ? Verdict::kSkipped : Verdict::kEnd;
}

std::string BadSteps::Describe(int64_t step, int64_t total_steps, const StepNumbers& numbers) const {
  if (numbers.counts_nothing)
    return absl::StrFormat("step %d/%d: none of its targets counts: step not applied", step + 1, total_steps);
  const bool overflow = IsOverflow(numbers), loss = !std::isfinite(numbers.loss);
  const int64_t count = overflow ? overflows_ : bad_, most = overflow ? kMaxOverflows : max_in_a_row_;
  std::string line =
      absl::StrFormat("step %d/%d: %s %g", step + 1, total_steps, loss ? "loss" : "gradient norm",
                      loss ? numbers.loss : numbers.grad_norm);
  if (numbers.loss_scale.has_value()) absl::StrAppendFormat(&line, " at loss scale %g", *numbers.loss_scale);
  if (count < most) {
    absl::StrAppendFormat(&line, ": step not applied (%d in a row, the run ends at %d)", count, most);
  } else {
    absl::StrAppendFormat(&line, ": step not applied, %d in a row: training has diverged; try a smaller --lr",
                          count);
  }
  return line;
}

}  // namespace ft
