// Sums, maxima and minima of lanes.
#pragma once

#include "compiler/codegen/elements.h"

namespace ft::compiler {

/// What changes nothing, in the type of `like`: of "sum", "max" or "min".
Lanes identityOf(llvm::StringRef kind, Lanes like);
Lanes combined(llvm::StringRef kind, Lanes a, Lanes b);
/// All lanes of vectors, by a fixed tree: neighbouring vectors, then halves.
Lanes joined(llvm::StringRef kind, llvm::ArrayRef<Lanes> vectors);

} // namespace ft::compiler
