#include "runtime/memplan/gap_finder.h"

#include <algorithm>
#include <limits>

namespace ft {

// The lowest offset from `offset` on with `size` free bytes. Whatever list is in the way leads past what it
// has there, until none of them is.
uint64_t GapFinder::FirstFrom(uint64_t offset, uint64_t size) {
  size_t agree = 0;
  for (size_t i = 0; agree < lists_.size(); i = i + 1 == lists_.size() ? 0 : i + 1) {
    absl::Span<const Occupancy::Interval>& list = lists_[i];
    size_t below = 0;
    while (below < list.size() && list[below].end <= offset) ++below;
    list.remove_prefix(below);
    work_ += 1 + below;
    ++agree;
    if (list.empty() || list.front().begin >= offset + size) continue;
    offset = list.front().end;
    agree = 0;
  }
  return offset;
}

uint64_t GapFinder::Find(uint64_t size, Fit fit) {
  uint64_t offset = FirstFrom(0, size);
  if (fit == Fit::kFirst) return offset;
  constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
  uint64_t best = offset, tightest = kNone;
  for (;;) {
    uint64_t end = kNone;
    for (const absl::Span<const Occupancy::Interval>& list : lists_) {
      if (!list.empty()) end = std::min(end, list.front().begin);
    }
    // Above everything is no gap.
    if (end == kNone) return tightest == kNone ? offset : best;
    if (end - offset < tightest) {
      tightest = end - offset;
      best = offset;
    }
    if (tightest == size) return best;
    offset = FirstFrom(end, size);
  }
}

}  // namespace ft
