#include "runtime/collective/liveness/step_times.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/synchronization/mutex.h"

namespace ft {
namespace {

// As it travels.
struct Figure {
  int64_t step;
  double ms;
};

}  // namespace

StepTimes::StepTimes(PeerLinks& links) : links_(links) {
  if (links.rank() > 0) return;
  for (Row& row : rows_) row.ms.assign(links.world_size(), -1);
  sorted_.resize(links.world_size());
  named_.resize(links.world_size());
}

void StepTimes::Report(int64_t step, double compute_ms) {
  const Figure figure{step, compute_ms};
  absl::MutexLock lock(&links_.mutex());
  if (links_.rank() == 0) return Add(0, step, compute_ms);
  if (links_.over()) return;
  links_.TrySend(0, PeerMessageType::kStepTime,
                 absl::string_view(reinterpret_cast<const char*>(&figure), sizeof(figure)));
}

std::optional<StepSpread> StepTimes::Newest() const {
  absl::MutexLock lock(&links_.mutex());
  return newest_;
}

std::optional<SlowRank> StepTimes::TakeSlow() {
  absl::MutexLock lock(&links_.mutex());
  return std::exchange(slow_, std::nullopt);
}

void StepTimes::Hear(size_t rank, PeerMessageType type, absl::string_view text) {
  Figure figure;
  if (type != PeerMessageType::kStepTime || links_.rank() > 0 || text.size() != sizeof(figure)) return;
  std::memcpy(&figure, text.data(), sizeof(figure));
  Add(rank, figure.step, figure.ms);
}

void StepTimes::Add(size_t rank, int64_t step, double compute_ms) {
  if (step < 0 || !std::isfinite(compute_ms) || compute_ms < 0) return;
  Row& row = rows_[static_cast<size_t>(step) % kRows];
  if (step < row.step) return;
  if (step > row.step) {
    row.step = step;
    row.count = 0;
    std::fill(row.ms.begin(), row.ms.end(), -1.0);
  }
  if (row.ms[rank] >= 0) return;
  row.ms[rank] = compute_ms;
  if (++row.count == row.ms.size()) Complete(row);
}

void StepTimes::Complete(const Row& row) {
  if (newest_.has_value() && row.step < newest_->step) return;
  const auto [least, most] = std::minmax_element(row.ms.begin(), row.ms.end());
  const StepSpread spread{
      .step = row.step,
      .min_ms = *least,
      .mean_ms = std::accumulate(row.ms.begin(), row.ms.end(), 0.0) / static_cast<double>(row.ms.size()),
      .max_ms = *most,
      .slowest_rank = static_cast<int>(most - row.ms.begin())};
  newest_ = spread;
  std::copy(row.ms.begin(), row.ms.end(), sorted_.begin());
  const auto middle = sorted_.begin() + static_cast<ptrdiff_t>((sorted_.size() - 1) / 2);
  std::nth_element(sorted_.begin(), middle, sorted_.end());
  Watch(spread, *middle);
}

void StepTimes::Watch(const StepSpread& spread, double median_ms) {
  const bool slow = spread.max_ms > SlowRank::kSlowFactor * median_ms;
  if (!slow || spread.slowest_rank != streak_.rank || streak_.steps == 0)
    streak_ = {.rank = spread.slowest_rank, .first_step = spread.step};
  if (!slow) return;
  ++streak_.steps;
  streak_.mean_ms += spread.max_ms;
  streak_.median_mean_ms += median_ms;
  if (streak_.steps < SlowRank::kSlowSteps || streak_.mean_ms < SlowRank::kSlowMs) return;
  if (named_[static_cast<size_t>(streak_.rank)]) return;
  named_[static_cast<size_t>(streak_.rank)] = true;
  slow_ = streak_;
  slow_->mean_ms /= static_cast<double>(streak_.steps);
  slow_->median_mean_ms /= static_cast<double>(streak_.steps);
}

}  // namespace ft
