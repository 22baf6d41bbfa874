// What programs that are made of @forward and train nothing have in common.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ft::compiler {

inline mlir::RankedTensorType tensorTypeOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}

/// A copy of @forward called `name`, at the end of its module, without dropout and what only that reads.
mlir::func::FuncOp copyWithoutDropout(mlir::func::FuncOp forward, llvm::StringRef name);

/// Erases what nothing needs any more.
void eraseDeadOps(mlir::func::FuncOp function);

/// Says that all it does is forward.
void markForward(mlir::func::FuncOp function);

} // namespace ft::compiler
