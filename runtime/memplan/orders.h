// Orders in which buffers are placed.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "runtime/memplan/memplan.h"

namespace ft {

using Order = std::vector<uint32_t>;  // a permutation of the buffers

// For first fit, the most promising for training steps first: a forward and backward pass nests lifetimes,
// and nested lifetimes stack perfectly when the longest come first.
std::vector<Order> PlacementOrders(absl::Span<const LiveRange> ranges);

// Priorities for exact searches: by the tightest place of a buffer, its lifetime and their products with its
// size. None of them is good for all instances.
std::vector<Order> SearchPriorities(absl::Span<const LiveRange> ranges);

}  // namespace ft
