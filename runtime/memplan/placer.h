// Puts buffers into an arena one by one, in a given order.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "runtime/memplan/gap_finder.h"
#include "runtime/memplan/memplan.h"
#include "runtime/memplan/occupancy.h"
#include "runtime/memplan/sections.h"

namespace ft {

struct Placement {
  std::vector<uint64_t> offsets;  // parallel to the ranges
  uint64_t height = 0;            // bytes
};

// Places buffers of which sizes are multiples of the alignment, so offsets are too.
class Placer {
 public:
  // `ranges` must outlive the placer.
  explicit Placer(absl::Span<const LiveRange> ranges);

  static constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

  // Places all buffers in `order`, a permutation of their indices. Returns false, with `out` unfinished, as
  // soon as the height exceeds `limit`, or work() `work_limit`.
  bool Place(absl::Span<const uint32_t> order, Fit fit, uint64_t limit, uint64_t work_limit, Placement* out);

  // The buffer that exceeded a limit, after Place has returned false.
  uint32_t overflow() const { return overflow_; }

  // Intervals of addresses looked at so far, and some for each buffer: the measure of effort that bounds the
  // search alike on every machine. Some 200 million take a second.
  uint64_t work() const { return work_; }

 private:
  uint64_t OffsetFor(uint32_t buffer, Fit fit);

  absl::Span<const LiveRange> ranges_;
  const Sections sections_;
  Occupancy occupancy_;
  uint64_t work_ = 0;
  uint32_t overflow_ = 0;
  std::vector<absl::Span<const Occupancy::Interval>> taken_;
};

}  // namespace ft
