// Which results of a row are written in the first pass over it.
#pragma once

#include "compiler/codegen/body_values.h"

namespace ft::compiler {

/// Made of arguments by a function that costs more than to read its value again, and wanted by the first pass
/// anyway: written there, with all its bits. After that pass nobody reads what may lie there.
struct EarlyResult {
  uint32_t value;
  size_t output;                  // number of the output
  llvm::SmallVector<bool> passes; // those of reductions, then that of results: whether they read it
};

llvm::SmallVector<EarlyResult> earlyResultsOf(const BodyFacts &facts);

} // namespace ft::compiler
