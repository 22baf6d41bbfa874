// What a module says of its model against what its ops do.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace ft::compiler {

/// Verifies the module's `ft.facts`. Where an op of @forward says what a fact of the module's `ft.facts` says
/// (norm epsilon, rope base, heads
/// ...), both must say the same: weights are compared with the facts, and computed with by the ops. Checks
/// `forward` as it was written, before anything is fused; a module without facts passes.
mlir::LogicalResult checkFacts(mlir::ModuleOp module, mlir::func::FuncOp forward);

} // namespace ft::compiler
