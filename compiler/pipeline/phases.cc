#include "compiler/pipeline/phases.h"

#include "compiler/autodiff/passes.h"
#include "compiler/fuse/passes.h"
#include "compiler/memory/passes.h"
#include "compiler/optimizer/passes.h"
#include "compiler/schedule/passes.h"
#include "compiler/shard/passes.h"

namespace ft::compiler {

using mlir::OpPassManager;

namespace {

void addFuse(OpPassManager &passes, const CompileOptions &) {
  passes.addPass(mlir::ft::createFuseLinearCrossEntropyPass());
}

void addAutodiff(OpPassManager &passes, const CompileOptions &) {
  passes.addPass(mlir::ft::createAutodiffPass());
  passes.addPass(mlir::ft::createVerifyAutodiffPass());
  passes.addPass(mlir::ft::createFuseLossGradPass());
}

void addUnits(OpPassManager &passes, const CompileOptions &) {
  passes.addPass(createFormUnitsPass());
  passes.addPass(createVerifyUnitsPass());
}

void addOptimizer(OpPassManager &passes, const CompileOptions &options) {
  InsertOptimizerPassOptions adamw;
  adamw.beta1 = options.beta1;
  adamw.beta2 = options.beta2;
  adamw.eps = options.eps;
  adamw.weightDecay = options.weightDecay;
  adamw.clip = options.clip;
  passes.addPass(createInsertOptimizerPass(adamw));
  passes.addPass(createVerifyOptimizerPass());
}

void addShard(OpPassManager &passes, const CompileOptions &options) {
  passes.addPass(createInsertCollectivesPass(InsertCollectivesPassOptions{options.strategy}));
  passes.addPass(createVerifyCollectivesPass());
}

void addSchedule(OpPassManager &passes, const CompileOptions &options) {
  passes.addPass(createLowerToFtxPass());
  passes.addPass(createOverlapCollectivesPass(OverlapCollectivesPassOptions{options.prefetch}));
  passes.addPass(createVerifySchedulePass());
}

void addMemory(OpPassManager &passes, const CompileOptions &) {
  passes.addPass(createAssignLiveRangesPass());
  passes.addPass(createVerifyLiveRangesPass());
}

constexpr Phase table[] = {
    {"parse", nullptr},          {"fuse", addFuse},   {"autodiff", addAutodiff}, {"units", addUnits},
    {"optimizer", addOptimizer}, {"shard", addShard}, {"schedule", addSchedule}, {"memory", addMemory},
};

} // namespace

llvm::ArrayRef<Phase> phases() { return table; }

} // namespace ft::compiler
