// Layers of a model that are one like the other, and models with fewer of them.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace ft::compiler {

/// The longest row of equal blocks in @forward, each of as many consecutive layers: each reads the block
/// before where its neighbours do, and what is no block's.
struct RepeatedLayers {
  using Block = llvm::SmallVector<mlir::Operation *>; // in order
  llvm::SmallVector<Block> blocks;                    // fewer than two: nothing is repeated

  int64_t count() const { return static_cast<int64_t>(blocks.size()); }
};

RepeatedLayers findRepeatedLayers(mlir::func::FuncOp forward);

/// Takes blocks out of the middle of the row until `count`, of two at least, are left, with the parameters
/// that only they have. Nothing where there are no more, or where something but the next block reads one of
/// them.
void keepRepeatedLayers(mlir::ModuleOp module, int64_t count);

} // namespace ft::compiler
