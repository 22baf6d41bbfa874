// Updates of weights: private functions of a module that ft.update runs over the blocks of a unit.
#pragma once

#include "dialects/ft/clusters.h"

namespace mlir::ft {

// Marks the functions while they are in f32; when types are final they are clusters.
inline constexpr llvm::StringLiteral kUpdateAttr = "ft.update";

inline bool isUpdate(func::FuncOp function) { return function->hasAttr(kUpdateAttr); }

// What `update` runs; null when there is no such function.
func::FuncOp bodyOf(UpdateOp update);

} // namespace mlir::ft
