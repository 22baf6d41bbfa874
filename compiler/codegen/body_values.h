// The values of a cluster body at some columns of a row, whatever computes them.
#pragma once

#include "compiler/codegen/elements.h"
#include "compiler/codegen/space.h"
#include "llvm/ADT/DenseMap.h"

namespace ft::compiler {

using LanesOf = llvm::DenseMap<mlir::Value, Lanes>;

mlir::Type elementOf(mlir::Value value);

/// A result that is reduced over rows, with the operands of the kernel that it and its partial results are.
struct PartialResult {
  ColumnReduction reduction;
  mlir::Value returned;
  unsigned result, partial;
};
/// Operands: arguments, results, partial results.
llvm::SmallVector<PartialResult> partialResultsOf(mlir::func::FuncOp body);

class BodyValues {
public:
  using LoadArgument = llvm::function_ref<Lanes(mlir::BlockArgument)>;

  /// Of `width` columns at a time.
  BodyValues(LaneBuilder &b, mlir::func::FuncOp body, const Space &space, int64_t width)
      : b(b), body(body), space(space), width(width) {}

  /// Starts a row: nothing is known of it.
  void clear() { rowValues.clear(); }
  /// Of what has no columns: one a row, or one for all.
  void set(mlir::Value value, Lanes scalar) { rowValues[value] = scalar; }
  Lanes get(mlir::Value value) const { return rowValues.lookup(value); }
  /// Those without columns that are known after `level` passes, but for the reductions.
  void evaluateScalars(unsigned level);

  /// At columns whose known values are in `known`; `load` gives those of arguments.
  Lanes vectorOf(mlir::Value value, LanesOf &known, LoadArgument load) const;

private:
  Lanes fillOf(mlir::ft::FillOp op, int64_t lanes) const;
  Lanes evaluate(mlir::Operation *op, llvm::ArrayRef<Lanes> operands) const;

  LaneBuilder &b;
  mlir::func::FuncOp body;
  const Space &space;
  int64_t width;
  LanesOf rowValues;
};

} // namespace ft::compiler
