// Matrices that an optimizer orthogonalizes, each on one rank.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ft::compiler {

/// Where gradients are slices, and so the directions that are made of them, and all that looks at whole
/// directions is ft.orthogonalize: sends each whole parameter to the rank that has its turn, and what becomes
/// of it back into slices. After it all updates of weights stand behind all that make directions.
void distributeDirections(mlir::func::FuncOp function);

} // namespace ft::compiler
