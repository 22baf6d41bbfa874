// The text of a module, before MLIR reads it.
#pragma once

#include "absl/status/status.h"
#include "llvm/ADT/StringRef.h"

namespace ft::compiler {

/// MLIR's parser and printer recurse into brackets, and into what names of attributes and types stand for,
/// until the stack ends, and print a name's meaning wherever it stands. InvalidArgument, "name:line:column:
/// error: ...", for text that is nested too deep, and for names that stand for too much.
absl::Status checkSource(llvm::StringRef text, llvm::StringRef name);

/// The same of a model, which is no bytecode: MLIR's reader of that does not stand damage.
absl::Status checkModelSource(llvm::StringRef text, llvm::StringRef name);

bool isBytecode(llvm::StringRef text);

} // namespace ft::compiler
