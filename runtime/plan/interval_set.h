// A set of bytes as disjoint intervals.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace ft {

// [begin, end).
struct Interval {
  static constexpr uint64_t kEverything = std::numeric_limits<uint64_t>::max();
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Few intervals are expected: adding costs time in proportion to them.
class IntervalSet {
 public:
  void Add(Interval added) {
    const auto first = std::lower_bound(intervals_.begin(), intervals_.end(), added.begin,
                                        [](const Interval& in, uint64_t begin) { return in.end < begin; });
    auto last = first;
    for (; last != intervals_.end() && last->begin <= added.end; ++last) {
      added.begin = std::min(added.begin, last->begin);
      added.end = std::max(added.end, last->end);
    }
    intervals_.insert(intervals_.erase(first, last), added);
  }

  bool Contains(Interval wanted) const {
    const auto at = std::lower_bound(intervals_.begin(), intervals_.end(), wanted.end,
                                     [](const Interval& in, uint64_t end) { return in.end < end; });
    return wanted.begin == wanted.end || (at != intervals_.end() && at->begin <= wanted.begin);
  }

 private:
  std::vector<Interval> intervals_;  // sorted, apart from each other
};

}  // namespace ft
