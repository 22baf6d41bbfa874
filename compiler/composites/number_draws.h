// Streams of random numbers for calls of composites.
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace ft::compiler {

/// In composites, which are not recursive, streams become 0, 1, ..., where those of equal name stay equal. In
/// all functions every call gets as many of its own as its callee draws from, unless it has some. Before any
/// pass on the graph: so recomputation and gradients draw the same, and no option changes a number.
void numberDraws(mlir::ModuleOp module);

} // namespace ft::compiler
