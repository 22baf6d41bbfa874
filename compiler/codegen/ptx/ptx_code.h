// From a cluster body to LLVM IR for GPUs, and to PTX.
#pragma once

#include "runtime/base/cluster.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

namespace ft::compiler {

/// Of compute capability 8.0.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>> makePtxMachine();

/// Optimized: all that is left is writing it. Deterministic.
llvm::Expected<std::unique_ptr<llvm::Module>>
buildGpuModule(const ClusterBody &body, llvm::TargetMachine &machine, llvm::LLVMContext &context);

} // namespace ft::compiler
