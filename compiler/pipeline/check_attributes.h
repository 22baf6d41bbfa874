// What a model says about itself and its ops, in attributes.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace ft::compiler {

/// Emits an error for an attribute "ft.*" that is none of a model's, is of another type, or contradicts
/// `forward`, whose signature has been checked: "ft.batch" is B and "ft.seq_len" T of tokens [B, T].
llvm::LogicalResult checkModuleAttributes(mlir::ModuleOp module, mlir::func::FuncOp forward);

/// Emits an error for an attribute of an op of a model that means nothing, or a layer that is no text.
llvm::LogicalResult checkOpAttributes(mlir::Operation &op);

} // namespace ft::compiler
