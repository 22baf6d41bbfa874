// Checks a memory plan without knowing how it was made.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/memplan/memplan.h"

namespace ft {

// OK when every offset is aligned, every buffer ends inside the arena, and no two buffers that are live at a
// common index share a byte. Otherwise Internal (a bug in whoever made the plan), naming the buffer, or both
// buffers of a clash with their lifetimes and addresses. Shares no code with the planner: a sweep over time
// with an ordered set of the address intervals in use, O(n log n). InvalidArgument when the input itself is
// malformed (spans of different lengths, last < first).
absl::Status ValidateMemoryPlan(absl::Span<const LiveRange> ranges, absl::Span<const uint64_t> offsets,
                                uint64_t arena_bytes, uint64_t alignment = kDefaultAlignment);

}  // namespace ft
