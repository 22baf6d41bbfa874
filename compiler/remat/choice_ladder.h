// Which layer takes which option, so that a step stays below a limit of memory at least cost: a chain of
// layers whose saved bytes pile up through forward and go in reverse through backward.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace ft::compiler {

struct ChainOption {
  uint64_t saved = 0;       // bytes that stay until backward
  uint64_t forwardPeak = 0; // of its own, on top of what earlier layers have saved
  uint64_t backwardPeak = 0;
  double seconds = 0;
  int span = 1; // layers that it decides about
};

struct ChainLayer {
  std::vector<ChainOption> options;
  // What else is live at the peak of its forward and backward: parameters, gathered units, ... Negative when
  // layers overlap less than they seem to.
  int64_t forwardRest = 0;
  int64_t backwardRest = 0;
};

struct Assignment {
  std::vector<int> options; // by layer; -1 for layers that an earlier option spans
  double seconds = 0;
};

/// The cheapest assignment in which no layer's peak exceeds `limit` bytes; none when there is none. Exact up
/// to the number of partial assignments that it remembers (some hundreds for each layer).
std::optional<Assignment> cheapestBelow(const std::vector<ChainLayer> &chain, int64_t limit);

/// The smallest limit that `cheapestBelow` can meet, to within `step` bytes, and the largest that still makes
/// a difference.
std::pair<int64_t, int64_t> limitsOf(const std::vector<ChainLayer> &chain, int64_t step);

/// Assignments for `count` limits from `lowest` to `highest`, from the cheapest to the one that needs least
/// memory, each costing more than the one before. With each, the limit it was made for.
std::vector<std::pair<int64_t, Assignment>> climb(const std::vector<ChainLayer> &chain, int64_t lowest,
                                                  int64_t highest, int count);

} // namespace ft::compiler
