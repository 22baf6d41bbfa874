// Which ops of a block are to be together.
#pragma once

#include "compiler/cluster/body_function.h"

namespace ft::compiler {

/// A group and the op in whose place it may stand: all that it reads is there, nothing before reads a result.
struct PlacedGroup {
  llvm::SmallVector<mlir::Operation *> ops; // in the order of the block
  mlir::Operation *place;                   // one of them
  bool computes; // else ops that move elements, whose readers may stand before them
};

/// What runs in clusters, and nowhere else.
bool isComputed(mlir::Operation *op);
/// Such an op, or one that only moves elements, which may run elsewhere.
bool mayBeMember(mlir::Operation *op);

/// The parameter whose memory a value is in, in whatever shape; null of others.
mlir::ft::ViewOp viewOf(mlir::Value value);

/// Groups that are bodies of clusters, of `most` ops at most, and those of ops that only move elements which
/// have to be put in their place.
llvm::SmallVector<PlacedGroup> formGroups(mlir::Block &block, int64_t most, BodyFunctions &bodies);

} // namespace ft::compiler
