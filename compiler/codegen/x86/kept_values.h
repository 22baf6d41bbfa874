// Which values of a row are computed once and kept from the last pass of reductions until results are
// written.
#pragma once

#include "compiler/codegen/early_results.h"

namespace ft::compiler {

/// Computed for a sum and for results, which costs more than to move it: kept meanwhile, in f32 and so with
/// all its bits, where an output of f32 will be.
struct KeptValue {
  uint32_t value;
  size_t output; // number of the output
};

/// At most one for an output that is not written early. After that pass nobody reads what may lie where the
/// output does.
llvm::SmallVector<KeptValue> keptValuesOf(const BodyFacts &facts, llvm::ArrayRef<EarlyResult> early);

} // namespace ft::compiler
