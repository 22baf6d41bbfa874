// How long each rank computes in each step, without waiting for the others: who is slow. Every rank's figure
// goes to rank 0 on the connections of the monitor; nobody waits for it, and no collective is added.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/collective/liveness/peer_links.h"

namespace ft {

// Over the ranks, in one step.
struct StepSpread {
  int64_t step = 0;
  double min_ms = 0;
  double mean_ms = 0;
  double max_ms = 0;
  int slowest_rank = 0;  // whose time is max_ms
};

// A rank that has taken more than kSlowFactor times the median of all ranks (of an even number the lower one
// of the two in the middle: with two ranks, the other one's) in kSlowSteps steps on end or more, and in
// kSlowMs of its time or more: a moment in which the system ran something else does not count.
struct SlowRank {
  static constexpr double kSlowFactor = 1.5;
  static constexpr int64_t kSlowSteps = 10;
  static constexpr double kSlowMs = 1000;

  int rank = 0;
  int64_t first_step = 0;  // of these steps
  int64_t steps = 0;
  double mean_ms = 0;         // of the rank in them
  double median_mean_ms = 0;  // mean of their medians
};

class StepTimes {
 public:
  explicit StepTimes(PeerLinks& links);

  // On every rank, by the thread that trains: it computed for `compute_ms` in step `step`. Allocates nothing
  // and does not block: where the connection is full, the figure is dropped, and rank 0 has none of that
  // step.
  void Report(int64_t step, double compute_ms);

  // On rank 0, the newest step of which every rank's figure has arrived: mostly the one before the newest
  // that it reported itself. None elsewhere.
  std::optional<StepSpread> Newest() const;

  // On rank 0, a rank that has become slow; each rank at most once in a run.
  std::optional<SlowRank> TakeSlow();

  // A message of rank `rank`; PeerLinks::mutex is held.
  void Hear(size_t rank, PeerMessageType type, absl::string_view text);

 private:
  // Figures of a step that have arrived. Ranks are at most a step apart.
  struct Row {
    int64_t step = -1;
    size_t count = 0;
    std::vector<double> ms;  // by rank; negative: not arrived
  };
  static constexpr size_t kRows = 4;

  void Add(size_t rank, int64_t step, double compute_ms);
  void Complete(const Row& row);
  void Watch(const StepSpread& spread, double median_ms);

  PeerLinks& links_;
  // All of it of rank 0, guarded by links_.mutex().
  Row rows_[kRows];
  std::vector<double> sorted_;
  std::optional<StepSpread> newest_;
  SlowRank streak_;  // of the rank that is slow now, in `steps` steps; the means are sums
  std::vector<bool> named_;
  std::optional<SlowRank> slow_;  // to be taken
};

}  // namespace ft
