// What makes the parameters of a module ones that can be laid out, trained and saved.
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace ft::compiler {

/// Emits an error at the parameter that is wrong: there must be one; names and aliases are those of tensors
/// in a checkpoint, hence text, not empty, not reserved by safetensors and each given to one parameter;
/// layers are text.
llvm::LogicalResult checkParameters(mlir::ModuleOp module);

/// Emits an error when every parameter is frozen, or the loss depends on none that is trained.
llvm::LogicalResult checkTrained(mlir::ModuleOp module);

} // namespace ft::compiler
