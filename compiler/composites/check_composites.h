// What composites of a model may be.
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace ft::compiler {

/// One error at the first composite, or op of one, that cannot be: not private, more than one block, floats
/// that are not f32, an op that reads parameters or inputs or draws random numbers, calls that lead back to
/// where they come from, or to very many ops.
mlir::LogicalResult checkComposites(mlir::ModuleOp module);

} // namespace ft::compiler
