// From what a plan has of a cluster back to a function, from which code is made.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/base/cluster.h"

namespace ft::compiler {

/// A cluster body with the space, the values and so the code of `body`, whatever shapes that came from: a
/// private function in no module. Null where there is no such function: periods of rows do not divide one
/// another, or a shape would be taken for another place.
mlir::OwningOpRef<mlir::func::FuncOp> functionOf(const ClusterBody &body, mlir::MLIRContext &context);

} // namespace ft::compiler
