// Sums, maxima and minima of lanes.
#pragma once

#include "compiler/codegen/elements.h"
#include "runtime/base/reduction_kind.h"

namespace ft::compiler {

/// "sum", "max" or "min".
ReductionKind reductionKindOf(llvm::StringRef name);

/// ft.add, ft.maximum or ft.minimum.
Elementwise combiningOf(ReductionKind kind);
/// What changes nothing, in the type of `like`.
Lanes identityOf(ReductionKind kind, Lanes like);
Lanes combined(ReductionKind kind, Lanes a, Lanes b);
/// All lanes of vectors, by a fixed tree: neighbouring vectors, then halves.
Lanes joined(ReductionKind kind, llvm::ArrayRef<Lanes> vectors);

} // namespace ft::compiler
