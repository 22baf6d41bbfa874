// What the threads of a block tell each other.
#pragma once

#include "compiler/codegen/kernel_builder.h"
#include "compiler/codegen/ptx/thread_plan.h"

namespace ft::compiler {

mlir::Value threadIndex(KernelBuilder &b); // i64
mlir::Value blockIndex(KernelBuilder &b);
/// All threads of the block come here.
void barrier(KernelBuilder &b);
/// `bytes` of static shared memory, aligned to 16, in the module.
void declareShared(KernelBuilder &b, mlir::ModuleOp module, int64_t bytes);
/// The address `bytes` (i64) behind its start.
mlir::Value sharedAddress(KernelBuilder &b, mlir::Value bytes);

/// The same value, of which the optimizer knows nothing: 32-bit words that stay as they are instead of
/// being unpacked for all that will need them.
Lanes held(Lanes packed);

/// One scalar of each thread.
struct Partial {
  ReductionKind kind;
  Lanes value;
};
/// Joined over `count` threads side by side (a power of two up to a warp), by a tree of neighbours at half
/// the distance each time. All of them get what the first has.
Lanes joinedInWarp(KernelBuilder &b, Partial partial, int64_t count);
/// Each lane of a vector over a warp.
Lanes lanesJoinedInWarp(KernelBuilder &b, ReductionKind kind, Lanes vector);
/// Over the threads of a row; where that is more than a warp, warps by one more such tree. `slot` is the
/// number of words of shared memory, for each warp of a row, before those of these.
llvm::SmallVector<Lanes> joinedInRow(KernelBuilder &b, llvm::ArrayRef<Partial> partials,
                                     const ThreadPlan &plan, mlir::Value thread, int64_t slot);

} // namespace ft::compiler
