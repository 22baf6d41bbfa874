#include "compiler/pipeline/compile.h"

#include "compiler/codegen/plan_code.h"
#include "compiler/collapse/repeated_layers.h"
#include "compiler/optimizer/rules.h"
#include "compiler/pipeline/check_model.h"
#include "compiler/pipeline/check_parameters.h"
#include "compiler/pipeline/check_source.h"
#include "compiler/pipeline/freeze_parameters.h"
#include "compiler/pipeline/meet_budgets.h"
#include "compiler/pipeline/run_stages.h"
#include "compiler/rebatch/rebatch.h"
#include "compiler/remat/policy.h"
#include "compiler/shard/strategy.h"
#include "dialects/ft/dialect.h"
#include "dialects/ft/signature.h"
#include "dialects/ftx/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

#include <limits>

#include "runtime/base/regular_file.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/mesh.h"

namespace ft::compiler {

using namespace mlir;

namespace {

absl::StatusOr<OwningOpRef<ModuleOp>> parseModel(const std::string &path, const CompileOptions &options,
                                                 MLIRContext *context, FirstError &error) {
  FT_ASSIGN_OR_RETURN(const std::string text, ReadText(path, "model", kMaxModelBytes));
  FT_RETURN_IF_ERROR(checkModelSource(text, path));
  error.showNamesOf(text);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(text, path), llvm::SMLoc());
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, context);
  error.showNamesOf("");
  if (!module || failed(freezeParameters(*module, options.frozen)) ||
      failed(checkModel(*module, llvm::sys::path::stem(path))) ||
      (options.loraRank == 0 && !options.evaluate && failed(checkTrained(*module))) ||
      (options.batch != 0 && failed(setBatch(*module, options.batch))))
    return absl::InvalidArgumentError(error.text().empty() ? path + ": error: it is not a model"
                                                           : error.text());
  if (options.evaluate)
    thawParameters(*module);
  return module;
}

void tellRecipe(const CompileOptions &options, PlanInfo &info) {
  if (options.fp8Recipe != "none")
    info.textSettings.emplace_back("fp8_recipe", options.fp8Recipe);
}

/// What it is made with, and the seed: all that is left where nothing is trained.
PlanInfo describeEvaluation(const CompileOptions &options) {
  PlanInfo info;
  info.producer = producer();
  for (const auto &number : options.runNumbers)
    if (number.first == "seed")
      info.settings.push_back(number);
  info.textSettings = {
      {"prefetch", options.prefetch}, {"wrap", options.wrap}, {"param_dtype", options.paramDtype}};
  tellRecipe(options, info);
  return info;
}

/// What has no part in an evaluation is as simple as can be. Weights are of the type that is computed with:
/// what eval_step of a plan that trains rounds masters to.
void settleEvaluation(CompileOptions &options) {
  if (!options.evaluate)
    return;
  options.optimizer = "sgd";
  options.momentum = options.clip = 0;
  options.microSteps = 1;
  options.remat = "none";
  options.offloadOptimizer = options.offloadStep = options.offloadActivations = false;
  options.stochasticRounding = options.accumulateEach = options.nesterov = false;
  options.masterWeights = options.paramDtype == "fp32";
  options.reduceDtype = options.paramDtype;
  options.accumulateDtype = "fp32";
  options.frozen.clear();
  options.adamwParams.clear();
}

PlanInfo describe(const CompileOptions &options) {
  if (options.evaluate)
    return describeEvaluation(options);
  PlanInfo info;
  info.producer = producer();
  const OptimizerRule *rule = findOptimizerRule(options.optimizer);
  const Hyperparameters all = hyperparametersOf({.beta1 = options.beta1,
                                                 .beta2 = options.beta2,
                                                 .eps = options.eps,
                                                 .weightDecay = options.weightDecay,
                                                 .momentum = options.momentum,
                                                 .nesterov = options.nesterov,
                                                 .beta2Decay = options.beta2Decay,
                                                 .eps2 = options.eps2,
                                                 .clipThreshold = options.clipThreshold,
                                                 .scaleParameter = options.scaleParameter});
  for (const Hyperparameter &h : rule ? rule->hyperparameters : std::vector<Hyperparameter>())
    info.settings.emplace_back(h.name, all.find(h.name)->second);
  info.settings.emplace_back("clip", options.clip);
  if (options.scalesLoss())
    info.settings.insert(info.settings.end(), {{"loss_scale", options.lossScale},
                                               {"initial_scale_power", double(options.initialScalePower)},
                                               {"min_loss_scale", options.minLossScale}});
  info.settings.insert(info.settings.end(), options.runNumbers.begin(), options.runNumbers.end());
  info.textSettings = {{"optimizer", options.optimizer},
                       {"prefetch", options.prefetch},
                       {"wrap", options.wrap},
                       {"remat", options.remat},
                       {"param_dtype", options.paramDtype},
                       {"reduce_dtype", options.reduceDtype},
                       {"accumulate_dtype", options.accumulateDtype}};
  tellRecipe(options, info);
  if (!options.masterWeights)
    info.textSettings.insert(
        info.textSettings.end(),
        {{"master_weights", "off"}, {"stochastic_rounding", options.stochasticRounding ? "on" : "off"}});
  info.textSettings.insert(info.textSettings.end(), options.runTexts.begin(), options.runTexts.end());
  return info;
}

/// Gives what is decided by cost or within a budget the mesh of the target's nodes, unless one was given.
absl::Status settleMesh(CompileOptions &options) {
  const Strategy *strategy = lookupStrategy(options.strategy);
  bool needed = options.prefetch == "auto" || options.memoryBudget != 0 || isBudget(options.remat);
  if (!needed || options.mesh)
    return absl::OkStatus();
  if (!strategy)
    return absl::InvalidArgumentError("unknown strategy '" + options.strategy + "'");
  int perNode = static_cast<int>(options.target.ranks_per_node());
  FT_ASSIGN_OR_RETURN(const Mesh mesh, MeshFor({.shards = strategy->axes != Axes::Replica,
                                                .two_axes = strategy->axes == Axes::Both,
                                                .strategy = std::string_view(strategy->name)},
                                               options.worldSize, std::min(options.worldSize, perNode)));
  options.mesh = {mesh.replica, mesh.shard};
  return absl::OkStatus();
}

/// What the plan says about what it was compiled for; `wanted` as the user has it.
void recordTarget(const CompileOptions &wanted, proto::Plan &plan) {
  *plan.mutable_target() = wanted.target;
  proto::Plan::Ranks &ranks = *plan.mutable_compiled_for();
  ranks.set_world_size(wanted.mesh ? wanted.mesh->first * wanted.mesh->second : wanted.worldSize);
  if (!wanted.mesh)
    return;
  ranks.set_replica(wanted.mesh->first);
  ranks.set_shard(wanted.mesh->second);
}

DialectRegistry dialects() {
  DialectRegistry registry;
  registry.insert<func::FuncDialect, mlir::ft::FtDialect, ftx::FtxDialect>();
  return registry;
}

} // namespace

absl::StatusOr<ModelOutline> outlineModel(const std::string &path, const CompileOptions &wanted) {
  CompileOptions options = wanted;
  options.batch = 0;
  MLIRContext context(dialects(), MLIRContext::Threading::DISABLED);
  ModelOutline outline;
  FirstError error(&context);
  FT_ASSIGN_OR_RETURN(OwningOpRef<ModuleOp> module, parseModel(path, options, &context, error));
  auto forward = module->lookupSymbol<func::FuncOp>(mlir::ft::kForwardFunction);
  outline.batch = mlir::ft::batchOf(forward);
  const int64_t blocks = findRepeatedLayers(forward).count();
  outline.blocks = blocks < 2 ? 0 : blocks;
  if (failed(setBatch(*module, 2 * outline.batch)))
    outline.batchKeeper = error.text();
  return outline;
}

absl::StatusOr<proto::Plan> compileModel(const std::string &path, const CompileOptions &wanted,
                                         const StageObserver &observe) {
  CompileOptions options = wanted;
  settleEvaluation(options);
  MLIRContext context(dialects(), MLIRContext::Threading::DISABLED);
  FirstError error(&context);
  FT_ASSIGN_OR_RETURN(OwningOpRef<ModuleOp> module, parseModel(path, options, &context, error));
  if (options.keptBlocks != 0)
    keepRepeatedLayers(*module, options.keptBlocks);
  FT_RETURN_IF_ERROR(settleMesh(options));
  PlanInfo info = describe(options);
  size_t remat = stageNumber("remat"), schedule = stageNumber("schedule");
  for (auto [number, stage] : llvm::enumerate(stages())) {
    if (number == remat && isBudget(options.remat)) {
      FT_ASSIGN_OR_RETURN(double seconds, meetRematBudget(*module, options, error));
      info.settings.push_back({"remat_seconds", seconds});
    }
    if (number == schedule && isScheduleOpen(options))
      FT_RETURN_IF_ERROR(settleSchedule(*module, options, error));
    FT_RETURN_IF_ERROR(runStage(stage, *module, options, error));
    FT_RETURN_IF_ERROR(observe(stage, number, *module));
  }
  FT_ASSIGN_OR_RETURN(proto::Plan plan, emit(*module, info, error));
  recordTarget(wanted, plan);
  if (options.makesCode)
    FT_RETURN_IF_ERROR(makeCode(plan, options.code));
  return plan;
}

} // namespace ft::compiler
