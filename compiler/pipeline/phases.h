// The phases of a compilation, in order.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace ft::compiler {

struct CompileOptions {
  std::string strategy; // a name or an alias of the strategy table
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weightDecay = 0.1;
  double clip = 1.0;            // largest global gradient norm; 0 does not clip
  std::string prefetch = "one"; // or "none"
};

struct Phase {
  llvm::StringLiteral name;
  /// Adds the passes of the phase, the one that verifies what it leaves last. Null for "parse".
  void (*addPasses)(mlir::OpPassManager &passes, const CompileOptions &options);
};

/// parse, fuse, autodiff, units, optimizer, shard, schedule, memory.
llvm::ArrayRef<Phase> phases();

} // namespace ft::compiler
