// Ops that move elements, before clusters are formed: as few as will do, and where they cost nothing. No bit
// changes.
#pragma once

#include "compiler/cluster/groups.h"

namespace ft::compiler {

/// A reshape of a reshape, a slice of a slice and a concatenation of a concatenation become one; what only
/// moves what was made wider moves it before; parts that are read in clusters are slices.
void simplifyMoves(mlir::Block &block);

/// Who reads what was repeated, or what has the same elements in another shape, does so itself: a cluster
/// does it in a register.
void repeatForEachReader(mlir::Block &block);

/// Groups that read something in another shape read what is there in that shape, instead.
void readReshaped(llvm::MutableArrayRef<PlacedGroup> groups);

} // namespace ft::compiler
