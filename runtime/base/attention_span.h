// Which keys a query of attention sees: one rule for costs, verifiers and the kernels of all devices.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace ft {

// The query at position i sees the keys from i - before + 1 to i + after - 1, as far as there are such. Both
// are from 1 to the number of positions, so a query always sees its own.
struct AttentionSpan {
  int64_t before = 1, after = 1;

  // Pairs of a query and a key it sees, among so many positions.
  constexpr int64_t Pairs(int64_t positions) const {
    const auto side = [positions](int64_t reach) {
      return reach * (reach + 1) / 2 + (positions - reach) * reach;
    };
    return side(before) + side(after) - positions;  // a query's own position is on both sides
  }
};

// `causal`: none after the query. `window`: none as many positions away, or more.
constexpr AttentionSpan SpanOf(int64_t positions, bool causal, std::optional<int64_t> window) {
  const int64_t reach = std::min(window.value_or(positions), positions);
  return {reach, causal ? 1 : reach};
}

// The segment of a position: positions `begin` up to `end`, which is not one of them, of its sequence.
struct SegmentBounds {
  int32_t begin, end;
};

}  // namespace ft
