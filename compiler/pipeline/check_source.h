// The text of a model, before MLIR reads it.
#pragma once

#include "absl/status/status.h"
#include "llvm/ADT/StringRef.h"

namespace ft::compiler {

/// MLIR's parser recurses into brackets until the stack ends, and its reader of bytecode does not stand
/// damage: InvalidArgument, "name:line:column: error: ...", for text nested too deep and for bytecode.
absl::Status checkSource(llvm::StringRef text, llvm::StringRef name);

} // namespace ft::compiler
