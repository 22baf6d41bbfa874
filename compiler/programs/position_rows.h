// The rows of one position, chosen as far up as can be.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>
#include <vector>

namespace ft::compiler {

/// The rows of values, all but the last dimension being rows, whose numbers `ids` has. Products and what is
/// done to each element are done to the chosen rows alone; what they take is cut by a look-up.
class RowChooser {
public:
  RowChooser(mlir::OpBuilder &builder, mlir::Value ids) : builder(builder), ids(ids) {}

  /// [rows of ids, columns].
  mlir::Value choose(mlir::Value value);

private:
  mlir::Value chooseFrom(mlir::Operation *op, mlir::Value value);
  mlir::Value lookUp(mlir::Value value);
  mlir::RankedTensorType chosenType(mlir::Value value) const;

  mlir::OpBuilder &builder;
  mlir::Value ids;
  llvm::DenseMap<mlir::Value, mlir::Value> chosen;
};

/// Where the elements of `ids` come from: their places in `input`, -1 for what is padding; some may be one
/// value instead. Nothing when something else than moving elements makes them, or another input has a part in
/// them.
std::optional<std::vector<int64_t>> placesIn(mlir::Value ids, mlir::BlockArgument input);

} // namespace ft::compiler
