// Look-ups of parameters, units and functions, with errors that name what was probably meant.
#pragma once

#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ft::verify {

// Emits an error at `op` and returns null when there is no such parameter, unit or function.
ParameterOp parameter(Operation *op, SymbolTableCollection &symbols, FlatSymbolRefAttr name);
UnitOp unit(Operation *op, SymbolTableCollection &symbols, FlatSymbolRefAttr name);
func::FuncOp function(Operation *op, SymbolTableCollection &symbols, FlatSymbolRefAttr name);

} // namespace mlir::ft::verify
