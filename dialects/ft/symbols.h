// Look-ups of parameters and units, with errors that name what was probably meant.
#pragma once

#include "dialects/ft/dialect.h"

namespace mlir::ft::verify {

// Emits an error at `op` and returns null when there is no such parameter, or unit.
ParameterOp parameter(Operation *op, SymbolTableCollection &symbols, FlatSymbolRefAttr name);
UnitOp unit(Operation *op, SymbolTableCollection &symbols, FlatSymbolRefAttr name);

} // namespace mlir::ft::verify
