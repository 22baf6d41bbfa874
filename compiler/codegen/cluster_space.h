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

/// What `value` is but for its dimensions and a rounding, where that is parts side by side: these are written
/// one by one. Else null.
mlir::ft::ConcatOp joinedIn(mlir::Value value);

struct FirstSpace {
  SpaceDigits digits;
  bool columnsAreFixed; // they are those of a reduction; else all elements are one row, to be cut
};
/// What the first reduction reduces are the columns: the last dimensions, else others, else what is beside
/// reduced rows. Without one they are all elements of the largest value.
FirstSpace firstSpaceOf(mlir::func::FuncOp body);

} // namespace ft::compiler
