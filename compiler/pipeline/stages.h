// The stages of a compilation, in order.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include "compiler/pipeline/options.h"

namespace ft::compiler {

struct Stage {
  llvm::StringLiteral name;
  /// Adds the passes of the stage, the one that verifies what it leaves last. Null for "parse".
  void (*addPasses)(mlir::OpPassManager &passes, const CompileOptions &options);
};

/// parse, fuse, autodiff, units, optimizer, remat, shard, precision, cluster, lower, schedule, memory.
llvm::ArrayRef<Stage> stages();

} // namespace ft::compiler
