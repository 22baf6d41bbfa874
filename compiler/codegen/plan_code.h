// Code for the clusters of a plan.
#pragma once

#include "compiler/codegen/kernel.h"
#include "runtime/plan/plan.pb.h"

namespace ft::compiler {

/// Code of each level for each cluster of the plan, which was emitted from `module`. As many threads as the
/// machine has processors; the same bytes always. Fails with the error of the first body that gives none.
mlir::LogicalResult addCode(mlir::ModuleOp module, llvm::ArrayRef<X86Level> levels, proto::Plan &plan);

} // namespace ft::compiler
