// Static memory planning: buffers with known lifetimes get fixed offsets in one arena.
//
// Time is the index of an instruction in a program; a buffer is live from its first to its last index, both
// included, and two buffers that are live at a common index must not share a byte. This is dynamic storage
// allocation, NP-hard in general; on the lifetimes of training steps the heuristics here reach the lower
// bound (the maximum of live bytes) or come within a percent of it.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace ft {

// A buffer and when it is needed.
struct LiveRange {
  uint64_t size;   // bytes; 0 is allowed, takes no room and gets offset 0
  uint32_t first;  // index of the first instruction that touches it
  uint32_t last;   // index of the last one (inclusive), >= first
};

// A buffer that lives through the whole program is {size, 0, kEndOfProgram}.
inline constexpr uint32_t kEndOfProgram = std::numeric_limits<uint32_t>::max();

inline constexpr uint64_t kDefaultAlignment = 256;

// The room that a buffer of `bytes` takes. `alignment` is a power of two.
constexpr uint64_t RoundUp(uint64_t bytes, uint64_t alignment = kDefaultAlignment) {
  return (bytes + alignment - 1) & ~(alignment - 1);
}

struct MemoryPlan {
  std::vector<uint64_t> offsets;  // bytes, parallel to the ranges, each a multiple of the alignment
  uint64_t arena_bytes = 0;       // a multiple of the alignment
  uint64_t lower_bound = 0;       // MaxLiveBytes(...).bytes: no plan can be smaller
  uint32_t peak_index = 0;        // and its index
};

// Offsets for `ranges`. The same input gives the same plan on every machine: ties are broken by position in
// `ranges`, and effort is bounded by counted work, never by time.
// It looks for the smallest arena, or for one of at most `enough` bytes where that is more.
// Errors (InvalidArgument): last < first (names the buffer), an alignment that is not a power of two.
// OutOfRange: sizes whose sum does not fit 63 bits.
absl::StatusOr<MemoryPlan> PlanMemory(absl::Span<const LiveRange> ranges,
                                      uint64_t alignment = kDefaultAlignment, uint64_t enough = 0);

struct LiveBytes {
  uint64_t bytes = 0;  // sizes rounded up to the alignment, summed over the buffers live at `index`
  uint32_t index = 0;  // the first instruction index at which the maximum is reached
};

// The most bytes live at one time, the lower bound of every plan. Ranges must be valid, as above.
LiveBytes MaxLiveBytes(absl::Span<const LiveRange> ranges, uint64_t alignment = kDefaultAlignment);

// The bytes live at each of the first `indices` instructions, counted in the same way.
std::vector<uint64_t> LiveBytesAtEach(absl::Span<const LiveRange> ranges, size_t indices,
                                      uint64_t alignment = kDefaultAlignment);

}  // namespace ft
