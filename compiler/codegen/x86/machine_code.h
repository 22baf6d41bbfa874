// From ops of kernels (lowering.h) to an object file.
#pragma once

#include <string>

#include "compiler/codegen/kernel.h"
#include "llvm/Support/Error.h"

namespace ft::compiler {

/// The module is used up. Floating-point ops stay as they are: no fast-math, no contraction, no library
/// calls. Deterministic.
llvm::Expected<std::string> compileToObject(mlir::ModuleOp module, X86Level level);

} // namespace ft::compiler
