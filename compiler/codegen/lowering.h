// From ops of func, scf, arith, math, vector, llvm and nvvm to optimized LLVM IR.
#pragma once

#include <memory>

#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

namespace ft::compiler {

/// A context with those dialects and their translations, and nothing of its user's.
std::unique_ptr<mlir::MLIRContext> makeCodeContext();

/// The machine of a target whose parts are initialized. Nothing is contracted.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
makeTargetMachine(llvm::StringRef triple, llvm::StringRef cpu, llvm::StringRef features);

/// The module is used up. What is made is for the machine, and not yet optimized.
llvm::Expected<std::unique_ptr<llvm::Module>>
translateToLlvm(mlir::ModuleOp module, llvm::LLVMContext &context, llvm::TargetMachine &machine);

/// Floating-point ops stay as they are: no fast-math, no contraction. Nothing is vectorized.
void optimize(llvm::Module &module, llvm::TargetMachine &machine);

/// An object file, or assembly. Deterministic.
llvm::Expected<std::string> emitFile(llvm::Module &module, llvm::TargetMachine &machine,
                                     llvm::CodeGenFileType type);

} // namespace ft::compiler
