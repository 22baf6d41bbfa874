// Looks for the lowest arena: several orders of placement, then a local search.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "runtime/memplan/placer.h"

namespace ft {

// The best placement found for `ranges` (sizes are positive multiples of the alignment). Stops when
// `lower_bound` or `enough` is reached, or when a fixed amount of work, counted in what was looked at, is
// done. Deterministic.
Placement FindPlacement(absl::Span<const LiveRange> ranges, uint64_t lower_bound, uint64_t enough);

}  // namespace ft
