// The parts of emitPlan.
#pragma once

#include "compiler/encode/numbering.h"
#include "runtime/plan/plan.pb.h"

namespace ft::compiler {

/// Bodies of clusters, each once, and their numbers.
llvm::LogicalResult emitClusters(mlir::ModuleOp module, Numbering &numbers, proto::Plan &plan);

/// Units, parameters, buffers, and what became of activations.
llvm::LogicalResult emitTables(mlir::ModuleOp module, const Numbering &numbers, proto::Plan &plan);

} // namespace ft::compiler
