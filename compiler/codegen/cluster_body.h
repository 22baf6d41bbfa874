// From the function that is a cluster body to what a plan has of it.
#pragma once

#include "compiler/codegen/space.h"
#include "runtime/base/cluster.h"

namespace ft::compiler {

/// Moves within the space (ft.broadcast, ft.reshape) are gone: their results are their operands. Fails with
/// one error where `body` is no cluster body, or larger than one may be.
mlir::FailureOr<ClusterBody> clusterBodyOf(mlir::func::FuncOp body);

} // namespace ft::compiler
