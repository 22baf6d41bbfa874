// A row of numbers: adding to a range, and the nearest number above a bound, in O(log n) each.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>

namespace ft::compiler {

/// A segment tree. Ranges are [begin, end), within the row.
class RangeMax {
public:
  explicit RangeMax(llvm::ArrayRef<int64_t> values);

  int64_t at(size_t index) const;
  void add(size_t begin, size_t end, int64_t value);

  /// The first and the last index of the range whose number is above `bound`.
  std::optional<size_t> firstAbove(size_t begin, size_t end, int64_t bound) const;
  std::optional<size_t> lastAbove(size_t begin, size_t end, int64_t bound) const;

private:
  // A subtree over the indices [low, high). What is `added` to it counts for itself, not yet for those below.
  struct Node {
    int64_t most = 0; // of the subtree, its own and lower additions included
    int64_t added = 0;
  };
  void build(size_t node, size_t low, size_t high, llvm::ArrayRef<int64_t> values);
  void add(size_t node, size_t low, size_t high, size_t begin, size_t end, int64_t value);
  template <bool First>
  std::optional<size_t> find(size_t node, size_t low, size_t high, size_t begin, size_t end,
                             int64_t bound) const;

  size_t size;
  llvm::SmallVector<Node, 0> nodes; // children of node i: 2i + 1, 2i + 2
};

} // namespace ft::compiler
