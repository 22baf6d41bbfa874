// The space of a cluster body: rows and columns, and where in it each value lies.
//
// The largest value of a body has an element for every place of the space: its last dimension are the
// columns, all others the rows. Other values lack rows, columns or both:
//
//   [rows..., columns]    whole          [columns]        the same in every row
//   [rows...] or [rows..., 1]  one a row      []               one for all
//
// or have the last ones of several row dimensions, and are repeated every `rows` rows. Values are elementwise
// primitives, ft.convert, ft.copy, ft.fill, ft.broadcast and ft.reshape within the space, and ft.reduce of
// columns. ft.reduce of rows may only be returned. All else is refused.
//
// A body without columns or rows of their own (elementwise ops on whole values alone) is cut into rows of 64,
// whatever its shape; the last may be shorter.
#pragma once

#include "dialects/ft/elementwise.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace ft::compiler {

/// Columns i, i + 64, i + 128 ... of a row are added by one lane.
inline constexpr int64_t kLanes = 64;

/// Element (row % rows, column or 0).
struct Layout {
  int64_t rows = 1;
  bool columns = false;
  bool operator==(const Layout &) const = default;
};

class Space {
public:
  /// Fails with one error where `body` is no cluster body.
  static mlir::FailureOr<Space> of(mlir::func::FuncOp body);

  int64_t rows() const { return numRows; }
  int64_t columns() const { return numColumns; }
  /// Of the last row; others have columns().
  int64_t lastColumns() const { return numLastColumns; }
  int64_t elements() const { return (numRows - 1) * numColumns + numLastColumns; }
  /// Cut into rows that mean nothing: whole values, and numbers for all, by elementwise ops alone.
  bool isFlat() const { return flat; }
  Layout layout(mlir::Value value) const { return layouts.lookup(value); }
  /// Passes over the columns of a row before this value is known: reductions on the longest way to it.
  unsigned level(mlir::Value value) const { return levels.lookup(value); }
  /// Reductions of columns whose operand is known after `level` passes.
  llvm::ArrayRef<mlir::ft::ReduceOp> reductions(unsigned level) const { return rowReductions[level]; }
  unsigned numLevels() const { return rowReductions.size(); }

  /// Rows whose results are reduced together, then block by block: so many that there are at most 64 blocks.
  int64_t blockRows() const;
  int64_t blocks() const { return (numRows + blockRows() - 1) / blockRows(); }

private:
  void findExtents(mlir::Block &block);
  void cutFlat(mlir::Block &block);
  Layout seed(mlir::Value value) const;
  bool isOneARow(mlir::BlockArgument argument) const;
  mlir::LogicalResult place(mlir::Operation *op);
  mlir::LogicalResult placeElementwise(mlir::Operation *op);
  mlir::LogicalResult placeMoved(mlir::Operation *op);
  mlir::LogicalResult placeReduce(mlir::ft::ReduceOp op);
  mlir::LogicalResult checkReturned(mlir::Operation *op) const;
  bool fits(mlir::Value value, Layout wanted) const;

  int64_t numRows = 1, numColumns = 1, numLastColumns = 1;
  bool flat = false;
  llvm::DenseMap<mlir::Value, Layout> layouts;
  llvm::DenseMap<mlir::Value, unsigned> levels;
  llvm::SmallVector<llvm::SmallVector<mlir::ft::ReduceOp>> rowReductions;
};

/// A result that is reduced over rows: of what, and how ("sum", "max" or "min").
struct ColumnReduction {
  mlir::Value operand;
  llvm::StringRef kind;
};
std::optional<ColumnReduction> asColumnReduction(mlir::Value value);

} // namespace ft::compiler
