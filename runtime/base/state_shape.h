// What of a parameter a state of the optimizer has an element for.
#pragma once

#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

namespace ft {

// Numbers as in Plan.UnitState.Layout.
enum class StateLayoutKind { kElements = 0, kRows = 1, kColumns = 2, kVectors = 3 };

// The shape of the state of a parameter: that of the parameter; with a last extent (rows) or a last but one
// (columns) of 1; of vectors, those of rank 0 and 1, their own. Nothing where it has none.
inline std::optional<std::vector<int64_t>> StateShape(StateLayoutKind kind, std::span<const int64_t> shape) {
  const bool is_matrix = shape.size() >= 2;
  if (kind != StateLayoutKind::kElements && is_matrix == (kind == StateLayoutKind::kVectors))
    return std::nullopt;
  std::vector<int64_t> state(shape.begin(), shape.end());
  if (kind == StateLayoutKind::kRows) state.back() = 1;
  if (kind == StateLayoutKind::kColumns) state[state.size() - 2] = 1;
  return state;
}

// Its elements; 0 where it has none.
inline int64_t StateElements(StateLayoutKind kind, std::span<const int64_t> shape) {
  const auto state = StateShape(kind, shape);
  return state ? std::accumulate(state->begin(), state->end(), int64_t{1}, std::multiplies<>()) : 0;
}

}  // namespace ft
