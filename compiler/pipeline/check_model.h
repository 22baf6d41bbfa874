// What makes a module a model that can be trained.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringRef.h"

namespace ft::compiler {

/// Emits an error at the op that is wrong: one function @forward that stands checkSignature and parameters
/// that stand checkParameters are needed; no tensor is larger than any memory, and tables have a row for
/// every token and every position. Sets the module's name and vocabulary size where they are missing, and its
/// inputs.
llvm::LogicalResult checkModel(mlir::ModuleOp module, llvm::StringRef name);

} // namespace ft::compiler
