#include "runtime/executor/bad_steps.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace ft {
namespace {

constexpr size_t kMaxNamed = 8;

// " on rank 1", " on ranks 0, 3", or nothing when no rank is marked.
std::string Ranks(absl::Span<const int64_t> words, int world_size) {
  std::vector<size_t> ranks;
  for (size_t bit = 0; bit < words.size() * 64; ++bit) {
    if ((static_cast<uint64_t>(words[bit / 64]) >> (bit % 64) & 1) != 0) ranks.push_back(bit);
  }
  if (world_size == 1 || ranks.empty()) return "";
  const size_t count = ranks.size();
  if (count > kMaxNamed) ranks.resize(kMaxNamed);
  return absl::StrCat(count == 1 ? " on rank " : " on ranks ", absl::StrJoin(ranks, ", "),
                      count > kMaxNamed ? absl::StrCat(" and ", count - kMaxNamed, " more") : "");
}

}  // namespace

bool BadSteps::IsOverflow(const StepNumbers& numbers) const {
  return numbers.loss_scale.has_value() && *numbers.loss_scale > min_scale_ && std::isfinite(numbers.loss);
}

BadSteps::Verdict BadSteps::Add(const StepNumbers& numbers) {
  if (numbers.counts_nothing) return Verdict::kSkipped;
  if (std::isfinite(numbers.loss) && std::isfinite(numbers.grad_norm)) {
    bad_ = overflows_ = 0;
    return Verdict::kApplied;
  }
  if (IsOverflow(numbers)) return ++overflows_ < kMaxOverflows ? Verdict::kSkipped : Verdict::kEnd;
  overflows_ = 0;
  return ++bad_ < max_in_a_row_ ? Verdict::kSkipped : Verdict::kEnd;
}

std::string BadSteps::Describe(int64_t step, int64_t total_steps, const StepNumbers& numbers,
                               int world_size) const {
  if (numbers.counts_nothing)
    return absl::StrFormat("step %d/%d: none of its targets counts: step not applied", step + 1, total_steps);
  const bool overflow = IsOverflow(numbers), loss = !std::isfinite(numbers.loss);
  const int64_t count = overflow ? overflows_ : bad_, most = overflow ? kMaxOverflows : max_in_a_row_;
  std::string line =
      absl::StrFormat("step %d/%d: %s %g%s", step + 1, total_steps, loss ? "loss" : "gradient norm",
                      loss ? numbers.loss : numbers.grad_norm, Ranks(numbers.ranks, world_size));
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
