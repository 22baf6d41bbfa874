// Clusters: private functions of a module that ft.cluster runs as one kernel.
#pragma once

#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ft {

// Marks the functions.
inline constexpr llvm::StringLiteral kClusterAttr = "ft.cluster";

inline bool isCluster(func::FuncOp function) { return function->hasAttr(kClusterAttr); }

inline auto clustersOf(ModuleOp module) {
  return llvm::make_filter_range(module.getOps<func::FuncOp>(), isCluster);
}

// What `cluster` runs; null when there is no such function.
func::FuncOp bodyOf(ClusterOp cluster);

// Whether a body is the sum of its argument over all dimensions but the last, and nothing else.
bool sumsRows(func::FuncOp body);

} // namespace mlir::ft
