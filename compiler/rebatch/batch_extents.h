// Which extents of a model change with its batch.
#pragma once

#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <optional>
#include <utility>
#include <vector>

namespace ft::compiler {

/// Follows the first extent of every input that has examples through all that ops say of their extents.
class BatchExtents : private mlir::ft::ExtentRelations {
public:
  /// `functions` are @forward and, behind it, the composites that it calls. Failed, with an error at the op
  /// that forbids it, when what changes with the batch meets what cannot: a parameter, a part that was cut
  /// out of it, an op that does not say.
  mlir::LogicalResult follow(llvm::ArrayRef<mlir::func::FuncOp> functions);

  bool changes(mlir::ft::Dimension extent) const { return changing.contains({extent.value, extent.dim}); }
  bool anyChanges(mlir::Value value) const;

private:
  using Key = std::pair<mlir::Value, int64_t>;
  struct Neighbour {
    Key key;
    mlir::Operation *op; // that says so
  };

  void same(mlir::ft::Dimension a, mlir::ft::Dimension b) override;
  void follows(mlir::ft::Dimension from, mlir::ft::Dimension to) override;
  bool onesMayChange() const override { return ofOne; }
  void fixed(mlir::ft::Dimension extent) override;
  mlir::LogicalResult reach(const Neighbour &found);
  mlir::LogicalResult seed(mlir::func::FuncOp forward);
  void relate(mlir::Operation *op);
  void relateCall(mlir::ft::CallOp call);
  void alike(mlir::Value a, mlir::Value b);

  bool ofOne = false; // the batch that the model is written for
  mlir::Operation *current = nullptr;
  llvm::DenseMap<Key, std::vector<Neighbour>> neighbours;
  llvm::DenseMap<Key, mlir::Operation *> kept; // null: an input
  llvm::DenseSet<Key> changing;
  std::vector<Key> pending;
};

} // namespace ft::compiler
