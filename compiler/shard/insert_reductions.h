// Gradients, the loss and what is summed over ranks.
#pragma once

#include "compiler/shard/strategy.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ft::compiler {

/// Reduces each flat gradient over the ranks: in a function that accumulates (ft.accumulate) only with
/// `each`; after ft.accumulated, unless `each`, and then before it.
void reduceGradients(mlir::func::FuncOp function, Axes axes, mlir::SymbolTable &symbols, bool each);

/// Gathers directions that are slices for what looks at parameters whole, and refreshes parameters that are
/// whole at rest but updated by slices.
void gatherUpdated(mlir::func::FuncOp function, mlir::SymbolTable &symbols);

/// Averages the loss of @train_step, sums the sums of squares over slices, and sums what @eval_step returns.
void reduceScalars(mlir::func::FuncOp function, Axes axes);

} // namespace ft::compiler
