// What inputs choose among.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace ft::compiler {

/// Says of every input of `forward`, in the module's attribute ft.inputs, what its ids have to be below, so
/// that data is looked at before it is used; of tokens and targets that is the vocabulary. Emits an error for
/// tokens whose vocabulary nothing says, and at an op that has fewer rows or classes than there are ids.
llvm::LogicalResult checkLookups(mlir::ModuleOp module, mlir::func::FuncOp forward);

} // namespace ft::compiler
