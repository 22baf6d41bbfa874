// Composites: private functions of a module that ft.call calls.
#pragma once

#include "dialects/ft/updates.h"

namespace mlir::ft {

// Marks the functions. Those that were made of ops of the dialect say of which: an OriginAttr.
inline constexpr llvm::StringLiteral kCompositeAttr = "ft.composite";
inline constexpr llvm::StringLiteral kOriginAttr = "ft.origin";

// Marks results of them that stay f32 whatever the precision.
inline constexpr llvm::StringLiteral kStatisticAttr = "ft.statistic";

inline bool isComposite(func::FuncOp function) { return function->hasAttr(kCompositeAttr); }

// The functions of `module` that are run: neither composites nor clusters nor updates.
inline auto programsOf(ModuleOp module) {
  return llvm::make_filter_range(module.getOps<func::FuncOp>(), [](func::FuncOp function) {
    return !isComposite(function) && !isCluster(function) && !isUpdate(function);
  });
}

inline auto compositesOf(ModuleOp module) {
  return llvm::make_filter_range(module.getOps<func::FuncOp>(), isComposite);
}

// What `call` calls; null when there is no such function.
func::FuncOp calleeOf(CallOp call);

// Null where a user wrote the composite.
OriginAttr originOf(func::FuncOp composite);

// Whether a cluster may have it, or all that it calls: it goes through memory with operands and results
// alone.
bool isOfClusters(Operation *op);

// FLOPs of the ops of the function that `body` names, seen from `op`.
uint64_t flopsOfBody(Operation *op, FlatSymbolRefAttr body);

} // namespace mlir::ft
