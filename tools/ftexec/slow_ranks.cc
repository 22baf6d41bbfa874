#include "tools/ftexec/slow_ranks.h"

#include "fmt/format.h"

namespace ft {

std::optional<ComputeSpread> ReportStepTime(StepTimes& times, int64_t step, double compute_ms,
                                            absl::FunctionRef<void(const std::string& line)> warn) {
  times.Report(step, compute_ms);
  if (const std::optional<SlowRank> slow = times.TakeSlow()) {
    // Steps as the progress counts them.
    warn(
        fmt::format("rank {} is slow: it computed {:.1f} ms a step in steps {} to {}, {:.1f} times the "
                    "median of the ranks ({:.1f} ms), and the others wait for it; look at its host",
                    slow->rank, slow->mean_ms, slow->first_step + 1, slow->first_step + slow->steps,
                    slow->mean_ms / slow->median_mean_ms, slow->median_mean_ms));
  }
  const std::optional<StepSpread> spread = times.Newest();
  if (!spread.has_value()) return std::nullopt;
  return ComputeSpread{.step = spread->step,
                       .min_ms = spread->min_ms,
                       .mean_ms = spread->mean_ms,
                       .max_ms = spread->max_ms,
                       .slowest_rank = spread->slowest_rank};
}

}  // namespace ft
