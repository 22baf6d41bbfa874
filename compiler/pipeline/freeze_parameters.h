// Parameters that a user does not want trained.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"

#include <string>

namespace ft::compiler {

/// Freezes every parameter whose name, or one of whose aliases, matches one of `patterns` (globs). Emits an
/// error for a pattern that matches none.
llvm::LogicalResult freezeParameters(mlir::ModuleOp module, llvm::ArrayRef<std::string> patterns);

/// Where all are frozen, as an evaluation may have them, none is: the others would be trained.
void thawParameters(mlir::ModuleOp module);

} // namespace ft::compiler
