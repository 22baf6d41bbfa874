// Looks for room among addresses that are taken.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "runtime/memplan/occupancy.h"

namespace ft {

// Which of the free gaps a buffer takes: the lowest one, or the tightest one (the lowest of equals).
enum class Fit { kFirst, kBest };

class GapFinder {
 public:
  // What is taken is the union of `lists`, each of them ascending and with gaps.
  explicit GapFinder(std::vector<absl::Span<const Occupancy::Interval>>* lists) : lists_(*lists) {}

  // The offset for `size` bytes. Once: it uses the lists up.
  uint64_t Find(uint64_t size, Fit fit);

  // Intervals and lists looked at.
  uint64_t work() const { return work_; }

 private:
  uint64_t FirstFrom(uint64_t offset, uint64_t size);

  std::vector<absl::Span<const Occupancy::Interval>>& lists_;
  uint64_t work_ = 0;
};

}  // namespace ft
