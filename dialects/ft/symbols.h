// Look-ups of parameters, units and functions, with errors that name what was probably meant.
#pragma once

#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ft {

/// The function of this name in the module around `op`; null where there is none. Looks from the end, where
/// functions are: a model has more parameters than functions, and a step calls one in every other op.
func::FuncOp functionOf(Operation *op, FlatSymbolRefAttr name);

} // namespace mlir::ft

namespace mlir::ft::verify {

// Emits an error at `op` and returns null when there is no such parameter, unit or function.
ParameterOp parameter(Operation *op, SymbolTableCollection &symbols, FlatSymbolRefAttr name);
UnitOp unit(Operation *op, SymbolTableCollection &symbols, FlatSymbolRefAttr name);
func::FuncOp function(Operation *op, SymbolTableCollection &symbols, FlatSymbolRefAttr name);

} // namespace mlir::ft::verify
