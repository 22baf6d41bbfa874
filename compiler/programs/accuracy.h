// What part of its targets a model has right.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ft::compiler {

/// Adds an output "accuracy" to `function`, which still returns the loss first: the part of the targets that
/// count whose logit is the largest of its row. Adds nothing where the loss is no cross entropy, where an
/// output is called so already, or where logits of all positions would have to be held for it alone.
void addAccuracy(mlir::func::FuncOp function);

/// Says of the loss of `function` that it is the cross entropy of the targets that count, where it is.
void markCrossEntropy(mlir::func::FuncOp function);

} // namespace ft::compiler
