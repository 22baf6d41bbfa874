// From ops of func, scf, arith, math, vector and llvm to an object file.
#pragma once

#include <string>

#include "compiler/codegen/kernel.h"
#include "llvm/Support/Error.h"

namespace ft::compiler {

/// A context with those dialects and their translations, and nothing of its user's.
std::unique_ptr<mlir::MLIRContext> makeCodeContext();

/// The module is used up. Floating-point ops stay as they are: no fast-math, no contraction, no library
/// calls. Deterministic.
llvm::Expected<std::string> compileToObject(mlir::ModuleOp module, X86Level level);

} // namespace ft::compiler
