// Where in a tensor the elements are that belong to the places of a space, and how that changes along an op.
//
// The rows of a space are counted by digits, the columns by one more. An index map has for each of them the
// distance, in elements of a dense tensor, that one more of it makes. So a reshape changes no map; what
// repeats, permutes or cuts dimensions changes the distances of digits that lie within a dimension each.
#pragma once

#include "runtime/base/cluster.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <variant>

namespace ft::compiler {

struct IndexMap {
  int64_t begin = 0;
  llvm::SmallVector<int64_t, 6> strides; // by digit, the columns last

  int64_t ofColumns() const { return strides.back(); }
  bool operator==(const IndexMap &) const = default;
};

/// Rows as digits (the last one moves fastest), and columns.
struct SpaceDigits {
  llvm::SmallVector<int64_t, 6> rows; // all above 1
  int64_t columns = 1;

  int64_t extent(unsigned digit) const { return digit < rows.size() ? rows[digit] : columns; }
  int64_t numRows() const;
  /// One element for each place, in the order of the space; and one for each row.
  IndexMap whole() const;
  IndexMap oneARow() const;
  ClusterBody::Place placeOf(const IndexMap &map) const;
};

/// A digit that does not lie within one dimension has to be cut: into two, the lower of which counts to `by`.
struct Cut {
  unsigned digit;
  int64_t by; // 0: nothing helps
};

/// Indices by dimension.
struct DimensionMap {
  llvm::SmallVector<int64_t, 6> begins; // by dimension
  llvm::SmallVector<std::pair<unsigned, int64_t>, 6>
      digits; // by digit: its dimension, and how far it moves there
};

/// Of a dense tensor of these dimensions.
std::variant<DimensionMap, Cut> dimensionsOf(const IndexMap &map, const SpaceDigits &space,
                                             llvm::ArrayRef<int64_t> shape);
/// Back, with a stride for each dimension, which may be 0.
IndexMap linear(const DimensionMap &map, llvm::ArrayRef<int64_t> strides);

/// Of a dense tensor.
llvm::SmallVector<int64_t> stridesOf(llvm::ArrayRef<int64_t> shape);

} // namespace ft::compiler
