// The space of rows and columns that a body runs over, and which of its reductions are over rows.
#pragma once

#include "compiler/codegen/index_map.h"
#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>

namespace ft::compiler {

/// Of a tensor of static shape.
int64_t elementsOf(mlir::Value value);

/// Dimensions [begin, end) of the operand of a reduction, of `extent` elements together; the last ones, but
/// for some of one element, or not.
struct Reduced {
  size_t begin, end;
  int64_t extent;
  bool isLast;
};
/// None where the dimensions are not beside each other.
std::optional<Reduced> reducedOf(mlir::ft::ReduceOp op);

/// A reduction of leading dimensions, of so many rows together; of a sum the argument that it is added to, or
/// null.
struct OverRows {
  mlir::Value x;
  llvm::StringRef kind;
  int64_t rows;
  mlir::BlockArgument acc = {};
};
/// None where `value` is made by something else.
std::optional<OverRows> overRowsOf(mlir::Value value);

/// The dimension along which its parts lie.
size_t axisOf(mlir::ft::ConcatOp op);

/// What `value` is but for its dimensions and a rounding, where that is parts side by side: these are written
/// one by one. Else null.
mlir::ft::ConcatOp joinedIn(mlir::Value value);

/// Whether rows of so many columns may be cut into pieces of 64, a few.
bool mayBePieces(int64_t columns);

struct BodySpace {
  SpaceDigits digits;
  bool columnsAreFixed; // they are those of a reduction; else all elements are one row, to be cut
  /// So many times the columns are reduced: parts of a row that are computed on side by side.
  int64_t pieces = 1;

  /// As many elements as there are places.
  int64_t elements() const { return digits.numRows() * digits.columns; }
  /// A piece of a tensor that has as many columns as are reduced.
  IndexMap piece(int64_t number) const;
  /// With columns cut into pieces of 64, which combine to the same: lanes of a reduction are as many. None
  /// where that may not be.
  std::optional<BodySpace> inPieces() const;
};
/// What the first reduction reduces are the columns: the last dimensions, else others, else what is beside
/// reduced rows. Without one they are all elements of the largest value, of parts side by side those that
/// each part has some number of.
BodySpace firstSpaceOf(mlir::func::FuncOp body);

} // namespace ft::compiler
