#include "compiler/pipeline/stages.h"

#include "compiler/adapters/passes.h"
#include "compiler/autodiff/passes.h"
#include "compiler/cluster/passes.h"
#include "compiler/composites/passes.h"
#include "compiler/fuse/passes.h"
#include "compiler/lower/passes.h"
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

template <typename To, typename From> void assign(To &to, const From &from) { to = from; }
template <unsigned N>
void assign(llvm::SmallVector<std::string, N> &to, const std::vector<std::string> &from) {
  to.assign(from.begin(), from.end());
}

/// The options of a pass: those called as settings are have the settings' values.
template <typename PassOptions> PassOptions take(const CompileOptions &from) {
  PassOptions to;
#define FT_SETTING(TYPE, NAME, ...)                                                                          \
  if constexpr (requires { to.NAME; })                                                                       \
    assign(to.NAME, from.NAME);
#define FT_FIELD FT_SETTING
#include "runtime/base/settings.def"
  return to;
}

void addCheck(OpPassManager &passes, const CompileOptions &options, std::unique_ptr<mlir::Pass> pass) {
  if (options.checks)
    passes.addPass(std::move(pass));
}

void addParse(OpPassManager &passes, const CompileOptions &options) {
  if (options.loraRank > 0)
    passes.addPass(createInsertLoraPass(take<InsertLoraPassOptions>(options)));
}

void addFuse(OpPassManager &passes, const CompileOptions &options) {
  if (options.fp8Recipe != "none")
    passes.addPass(createMarkPrecisePass()); // while the loss is one op, and before functions are copied
  // First: what only outputs need must not keep training from joining ops.
  MakeEvalStepPassOptions evaluation;
  evaluation.accuracy = options.evaluate;
  passes.addPass(createMakeEvalStepPass(evaluation));
  if (options.sample)
    passes.addPass(createMakeSampleStepPass());
  passes.addPass(createWeighLossPass());
  passes.addPass(mlir::ft::createFuseLinearCrossEntropyPass()); // of a composite that has a name still
  passes.addPass(createOutlineCompositesPass());
  passes.addPass(mlir::ft::createFuseQkvAttentionPass());
}

void addAutodiff(OpPassManager &passes, const CompileOptions &options) {
  mlir::ft::AutodiffPassOptions autodiff;
  autodiff.gradientFactor = 1.0 / static_cast<double>(options.microSteps);
  autodiff.lossScale = options.scalesLoss();
  autodiff.mean = options.seedsMean();
  passes.addPass(mlir::ft::createAutodiffPass(autodiff));
  addCheck(passes, options, mlir::ft::createVerifyAutodiffPass());
  passes.addPass(mlir::ft::createFuseLossGradPass());
}

void addUnits(OpPassManager &passes, const CompileOptions &options) {
  passes.addPass(createAssignRulesPass(take<AssignRulesPassOptions>(options)));
  passes.addPass(createFormUnitsPass(take<FormUnitsPassOptions>(options)));
  addCheck(passes, options, createVerifyUnitsPass());
  passes.addPass(createMakeMicroStepPass(take<MakeMicroStepPassOptions>(options)));
}

void addOptimizer(OpPassManager &passes, const CompileOptions &options) {
  auto optimizer = take<InsertOptimizerPassOptions>(options);
  optimizer.dynamicScale = options.lossScale == 0;
  passes.addPass(createInsertOptimizerPass(optimizer));
  addCheck(passes, options, createVerifyOptimizerPass());
  if (options.evaluate)
    passes.addPass(createDropTrainingPass());
}

void addRemat(OpPassManager &passes, const CompileOptions &options) {
  if (options.evaluate)
    return;
  // A budget has been met, and its choices marked, before this stage.
  if (!isBudget(options.remat))
    passes.addPass(createChooseRematPass(take<ChooseRematPassOptions>(options)));
  passes.addPass(createApplyRematPass());
  passes.addPass(createInsertOffloadPass());
  addCheck(passes, options, createVerifyRematPass());
}

void addShard(OpPassManager &passes, const CompileOptions &options) {
  passes.addPass(createInsertCollectivesPass(take<InsertCollectivesPassOptions>(options)));
  addCheck(passes, options, createVerifyCollectivesPass());
  passes.addPass(createExpandOrthogonalizePass());
}

void addPrecision(OpPassManager &passes, const CompileOptions &options) {
  auto precision = take<ApplyPrecisionPassOptions>(options);
  precision.frozenMasters = options.loraRank == 0;
  passes.addPass(createApplyPrecisionPass(precision));
  passes.addPass(createRoundProductsPass(take<RoundProductsPassOptions>(options)));
  addCheck(passes, options, createVerifyPrecisionPass());
}

void addCluster(OpPassManager &passes, const CompileOptions &options) {
  passes.addPass(createRecordSavedPass());        // types are final now, and the functions are still there
  passes.addPass(mlir::ft::createFuseGeluPass()); // the table lists products and GELUs apart
  passes.addPass(createExpandCompositesPass());
  passes.addPass(createAccumulateInPlacePass());
  passes.addPass(createFormUpdatesPass());
  passes.addPass(createFormClustersPass(take<FormClustersPassOptions>(options)));
  passes.addPass(mlir::ft::createFuseBiasGradPass()); // of sums that joined no other ops
}

void addLower(OpPassManager &passes, const CompileOptions &options) {
  passes.addPass(createLowerToFtxPass());
  addCheck(passes, options, createVerifySchedulePass());
}

void addSchedule(OpPassManager &passes, const CompileOptions &options) {
  auto buckets = take<JoinTransfersPassOptions>(options);
  if (options.prefetch == "none")
    buckets.bucketCapMb = 0;
  passes.addPass(createJoinTransfersPass(buckets));
  if (options.prefetch != "none") {
    passes.addPass(createDelaySecondSumsPass());
    passes.addPass(createAdvanceHostStepPass());
  }
  if (options.prefetch == "auto") {
    auto cost = take<ScheduleByCostPassOptions>(options);
    std::tie(cost.replica, cost.shard) = options.mesh.value_or(std::pair(1, options.worldSize));
    passes.addPass(createScheduleByCostPass(cost, options.target));
  } else {
    auto overlap = take<OverlapCollectivesPassOptions>(options);
    overlap.reason = options.scheduleReason;
    passes.addPass(createOverlapCollectivesPass(overlap));
  }
  addCheck(passes, options, createVerifySchedulePass());
}

void addMemory(OpPassManager &passes, const CompileOptions &options) {
  passes.addPass(createAssignLiveRangesPass());
  addCheck(passes, options, createVerifyLiveRangesPass());
}

constexpr Stage table[] = {
    {"parse", addParse},         {"fuse", addFuse},   {"autodiff", addAutodiff}, {"units", addUnits},
    {"optimizer", addOptimizer}, {"remat", addRemat}, {"shard", addShard},       {"precision", addPrecision},
    {"cluster", addCluster},     {"lower", addLower}, {"schedule", addSchedule}, {"memory", addMemory},
};

} // namespace

llvm::ArrayRef<Stage> stages() { return table; }

} // namespace ft::compiler
