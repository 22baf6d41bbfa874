// Puts buffers into an arena one by one, in a given order.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "runtime/memplan/memplan.h"
#include "runtime/memplan/neighbours.h"

namespace ft {

// Which of the free gaps a buffer takes: the lowest one, or the tightest one (the lowest of equals).
enum class Fit { kFirst, kBest };

struct Placement {
  std::vector<uint64_t> offsets;  // parallel to the ranges
  uint64_t height = 0;            // bytes
};

// Places buffers of which sizes are multiples of the alignment, so offsets are too. Keeps for every buffer
// the list of those it meets in time where these lists are short enough, and otherwise scans the placed ones
// by offset.
class Placer {
 public:
  // `ranges` must outlive the placer.
  explicit Placer(absl::Span<const LiveRange> ranges);
  ~Placer();

  static constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

  // Places all buffers in `order`, a permutation of their indices. Returns false, with `out` unfinished, as
  // soon as the height exceeds `limit`.
  bool Place(absl::Span<const uint32_t> order, Fit fit, uint64_t limit, Placement* out);

  // The buffer that exceeded the limit, after Place has returned false.
  uint32_t overflow() const { return overflow_; }

  // Buffers looked at so far: the measure of effort that bounds the search alike on every machine.
  uint64_t work() const { return work_; }

 private:
  struct Occupied {
    uint64_t begin, end;  // bytes
  };
  class Shelf;  // placed buffers by offset

  uint64_t OffsetAmongNeighbours(uint32_t buffer, Fit fit, const std::vector<uint64_t>& offsets);

  absl::Span<const LiveRange> ranges_;
  uint64_t work_ = 0;
  uint32_t overflow_ = 0;
  std::optional<Neighbours> neighbours_;  // where they are few enough
  std::vector<uint8_t> placed_;
  std::vector<Occupied> scratch_;
};

}  // namespace ft
