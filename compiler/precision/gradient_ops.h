// Which ops make gradients of parameters.
#pragma once

#include "dialects/ft/dialect.h"
#include "llvm/ADT/DenseSet.h"

namespace ft::compiler {

/// Ops that can write their results of role Rounded and Sum in a type of gradients, because nothing but
/// ft.pack and sums of such gradients reads them. What else is packed is made in the compute type and has to
/// be rounded.
class GradientOps {
public:
  explicit GradientOps(mlir::Block &block);

  /// Whether `result` is written in it.
  bool contains(mlir::OpResult result) const;

private:
  bool readsGradients(mlir::Operation *op) const;
  bool isReadAsGradient(mlir::Operation *op) const;
  bool takesGradient(mlir::OpOperand &use) const;

  llvm::DenseSet<mlir::Operation *> ops;
};

} // namespace ft::compiler
