#include "compiler/pipeline/phases.h"

#include "compiler/autodiff/passes.h"
#include "compiler/cluster/passes.h"
#include "compiler/composites/passes.h"
#include "compiler/fuse/passes.h"
#include "compiler/memory/passes.h"
#include "compiler/optimizer/passes.h"
#include "compiler/precision/passes.h"
#include "compiler/programs/passes.h"
#include "compiler/remat/passes.h"
#include "compiler/remat/policy.h"
#include "compiler/schedule/passes.h"
#include "compiler/shard/passes.h"
#include "compiler/shard/strategy.h"

namespace ft::compiler {

using mlir::OpPassManager;

namespace {

void addCheck(OpPassManager &passes, const CompileOptions &options, std::unique_ptr<mlir::Pass> pass) {
  if (options.checks)
    passes.addPass(std::move(pass));
}

void addFuse(OpPassManager &passes, const CompileOptions &) {
  // First: what only outputs need must not keep training from joining ops.
  passes.addPass(createMakeEvalStepPass());
  passes.addPass(createOutlineCompositesPass());
  passes.addPass(mlir::ft::createFuseLinearCrossEntropyPass());
  passes.addPass(mlir::ft::createFuseQkvAttentionPass());
}

void addAutodiff(OpPassManager &passes, const CompileOptions &options) {
  mlir::ft::AutodiffPassOptions autodiff;
  autodiff.gradientFactor = 1.0 / static_cast<double>(options.microSteps);
  autodiff.lossScale = options.precision.scalesLoss();
  passes.addPass(mlir::ft::createAutodiffPass(autodiff));
  addCheck(passes, options, mlir::ft::createVerifyAutodiffPass());
  passes.addPass(mlir::ft::createFuseLossGradPass());
}

void addUnits(OpPassManager &passes, const CompileOptions &options) {
  FormUnitsPassOptions units;
  units.wrap = options.units.wrap;
  units.names.assign(options.units.names.begin(), options.units.names.end());
  units.minNumParams = options.units.minNumParams;
  units.persistenceThreshold = options.units.persistenceThreshold;
  passes.addPass(createFormUnitsPass(units));
  addCheck(passes, options, createVerifyUnitsPass());
  passes.addPass(createMakeMicroStepPass(MakeMicroStepPassOptions{options.microSteps}));
}

void addOptimizer(OpPassManager &passes, const CompileOptions &options) {
  InsertOptimizerPassOptions optimizer;
  optimizer.optimizer = options.optimizer.name;
  optimizer.beta1 = options.optimizer.beta1;
  optimizer.beta2 = options.optimizer.beta2;
  optimizer.eps = options.optimizer.eps;
  optimizer.weightDecay = options.optimizer.weightDecay;
  optimizer.momentum = options.optimizer.momentum;
  optimizer.nesterov = options.optimizer.nesterov;
  optimizer.stochasticRounding = options.optimizer.stochasticRounding;
  optimizer.clip = options.optimizer.clip;
  optimizer.dynamicScale = options.precision.lossScale == 0;
  optimizer.growthInterval = options.precision.lossScaleWindow;
  optimizer.hysteresis = options.precision.hysteresis;
  optimizer.minScale = options.precision.minLossScale;
  passes.addPass(createInsertOptimizerPass(optimizer));
  addCheck(passes, options, createVerifyOptimizerPass());
}

void addRemat(OpPassManager &passes, const CompileOptions &options) {
  // A budget has been met, and its choices marked, before this phase.
  if (!isBudget(options.remat))
    passes.addPass(createChooseRematPass({options.remat, options.offload.activations}));
  passes.addPass(createApplyRematPass());
  passes.addPass(createInsertOffloadPass());
  addCheck(passes, options, createVerifyRematPass());
}

void addShard(OpPassManager &passes, const CompileOptions &options) {
  InsertCollectivesPassOptions collectives;
  collectives.strategy = options.strategy;
  collectives.keepGathered.assign(options.units.keepGathered.begin(), options.units.keepGathered.end());
  collectives.offloadOptimizer = options.offload.optimizer;
  collectives.offloadParameters = options.offload.parameters;
  collectives.accumulateEach = options.accumulateEach;
  passes.addPass(createInsertCollectivesPass(collectives));
  addCheck(passes, options, createVerifyCollectivesPass());
}

void addPrecision(OpPassManager &passes, const CompileOptions &options) {
  const PrecisionOptions &precision = options.precision;
  passes.addPass(
      createApplyPrecisionPass({precision.paramDtype, precision.reduceDtype, precision.masterWeights}));
  addCheck(passes, options, createVerifyPrecisionPass());
}

void addSchedule(OpPassManager &passes, const CompileOptions &options) {
  passes.addPass(createRecordSavedPass()); // types are final now, and the functions are still there
  passes.addPass(createExpandCompositesPass());
  passes.addPass(mlir::ft::createFuseResidualNormPass()); // the table lists sums and norms apart
  passes.addPass(mlir::ft::createFuseGeluPass());         // products and GELUs too
  passes.addPass(createFormUpdatesPass());
  passes.addPass(createFormClustersPass(FormClustersPassOptions{options.clusterOps}));
  passes.addPass(createLowerToFtxPass());
  JoinTransfersPassOptions buckets;
  buckets.bucketCapMb = options.overlap.prefetch == "none" ? 0 : options.overlap.bucketCapMb;
  buckets.reduceBucketMb = options.overlap.reduceBucketMb;
  buckets.gatherBucketMb = options.overlap.gatherBucketMb;
  passes.addPass(createJoinTransfersPass(buckets));
  if (options.overlap.prefetch == "auto") {
    ScheduleByCostPassOptions cost;
    cost.memoryBudget = options.overlap.memoryBudget;
    std::tie(cost.replica, cost.shard) = options.mesh.value_or(std::pair(1, options.worldSize));
    passes.addPass(createScheduleByCostPass(cost, options.overlap.target));
  } else {
    OverlapCollectivesPassOptions overlap;
    overlap.prefetch = options.overlap.prefetch;
    overlap.forwardPrefetch = options.overlap.forwardPrefetch;
    overlap.limitAllGathers = options.overlap.limitAllGathers;
    overlap.reason = options.overlap.reason;
    passes.addPass(createOverlapCollectivesPass(overlap));
  }
  addCheck(passes, options, createVerifySchedulePass());
}

void addMemory(OpPassManager &passes, const CompileOptions &options) {
  passes.addPass(createAssignLiveRangesPass());
  addCheck(passes, options, createVerifyLiveRangesPass());
}

constexpr Phase table[] = {
    {"parse", nullptr},    {"fuse", addFuse},           {"autodiff", addAutodiff},
    {"units", addUnits},   {"optimizer", addOptimizer}, {"remat", addRemat},
    {"shard", addShard},   {"precision", addPrecision}, {"schedule", addSchedule},
    {"memory", addMemory},
};

} // namespace

llvm::ArrayRef<Phase> phases() { return table; }

} // namespace ft::compiler
