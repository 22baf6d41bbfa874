// Looks for room between intervals that come in order of their begin.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "runtime/memplan/placer.h"

namespace ft {

class GapFinder {
 public:
  GapFinder(uint64_t size, Fit fit) : size_(size), fit_(fit) {}

  // The next occupied interval, with `begin` not below that of the one before. Returns true once the answer
  // is known.
  bool Add(uint64_t begin, uint64_t end) {
    if (begin >= cursor_ + size_ && begin - cursor_ < best_gap_) {
      best_gap_ = begin - cursor_;
      best_offset_ = cursor_;
      if (fit_ == Fit::kFirst || best_gap_ == size_) return true;
    }
    cursor_ = std::max(cursor_, end);
    return false;
  }

  // After the last interval, or once Add returned true.
  uint64_t Offset() const { return best_gap_ == kNone ? cursor_ : best_offset_; }

 private:
  static constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();

  uint64_t size_;
  Fit fit_;
  uint64_t cursor_ = 0;  // everything below is occupied, or a gap that is too small
  uint64_t best_gap_ = kNone;
  uint64_t best_offset_ = 0;
};

}  // namespace ft
