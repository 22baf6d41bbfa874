// The rows of one position, chosen as far up as can be.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

#include <cstdint>
#include <functional>
#include <optional>

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

/// Where the elements of ids come from, reckoned one by one: a batch may have more of them than fit memory.
struct IdPlaces {
  /// Of how many parts of equal size ids are made that are alike: an element of one comes from as far behind
  /// that of the part before as an equal part of the input is long, or both are padding.
  int64_t rows = 1;
  /// The place in the input of an element of ids, -1 for what is padding; some may be one value instead.
  std::function<int64_t(int64_t element)> at;
};

/// Places of `ids` in `input`. Nothing when something else than moving elements makes them, or another input
/// has a part in them.
std::optional<IdPlaces> placesIn(mlir::Value ids, mlir::BlockArgument input);

} // namespace ft::compiler
