// Parameters are read from what the rank holds of their unit, or from a gathered copy.
#pragma once

#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ft::compiler {

/// Replaces every ft.get in `function` by an ft.view of the unit: of its ft.shard, when it is whole at rest
/// on the device; else of an ft.gather (or ft.fetch, from the host) that is released after the last use that
/// shares it. Uses share a copy as long as no stretch of ops lies between them that uses other units but not
/// this one; always, when the unit is kept until backward.
void insertGathers(mlir::func::FuncOp function, mlir::SymbolTable &symbols);

} // namespace ft::compiler
