#include "compiler/pipeline/compile.h"

#include "compiler/emit/emit_plan.h"
#include "compiler/pipeline/check_model.h"
#include "compiler/pipeline/check_source.h"
#include "compiler/pipeline/diagnostics.h"
#include "compiler/pipeline/freeze_parameters.h"
#include "compiler/pipeline/solve_budget.h"
#include "compiler/remat/policy.h"
#include "compiler/shard/strategy.h"
#include "dialects/ft/dialect.h"
#include "dialects/ftx/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

#include <limits>

#include "runtime/base/regular_file.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/bind.h"

namespace ft::compiler {

using namespace mlir;

namespace {

/// The phase's own passes, or an error at the op that it refused.
absl::Status runPhase(const Phase &phase, ModuleOp module, const CompileOptions &options,
                      const FirstError &error) {
  if (!phase.addPasses)
    return absl::OkStatus();
  PassManager passes(module.getContext());
  phase.addPasses(passes, options);
  if (succeeded(passes.run(module)))
    return absl::OkStatus();
  return absl::InvalidArgumentError(error.text().empty() ? "phase " + phase.name.str() + " failed"
                                                         : error.text());
}

absl::StatusOr<OwningOpRef<ModuleOp>> parseModel(const std::string &path, ArrayRef<std::string> frozen,
                                                 MLIRContext *context, FirstError &error) {
  FT_ASSIGN_OR_RETURN(const std::string text, ReadText(path, "model", kMaxModelBytes));
  FT_RETURN_IF_ERROR(checkModelSource(text, path));
  error.showNamesOf(text);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(text, path), llvm::SMLoc());
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, context);
  error.showNamesOf("");
  if (!module || failed(freezeParameters(*module, frozen)) ||
      failed(checkModel(*module, llvm::sys::path::stem(path))))
    return absl::InvalidArgumentError(error.text().empty() ? path + ": error: it is not a model"
                                                           : error.text());
  return module;
}

PlanInfo describe(const CompileOptions &options) {
  PlanInfo info;
  info.producer = "ftc " FT_VERSION;
  info.settings = {{"beta1", options.optimizer.beta1},
                   {"beta2", options.optimizer.beta2},
                   {"eps", options.optimizer.eps},
                   {"weight_decay", options.optimizer.weightDecay},
                   {"clip", options.optimizer.clip}};
  const PrecisionOptions &precision = options.precision;
  if (precision.scalesLoss())
    info.settings.insert(info.settings.end(), {{"loss_scale", precision.lossScale},
                                               {"initial_scale_power", double(precision.initialScalePower)},
                                               {"min_loss_scale", precision.minLossScale}});
  info.settings.insert(info.settings.end(), options.runNumbers.begin(), options.runNumbers.end());
  info.textSettings = {{"optimizer", options.optimizer.name},
                       {"prefetch", options.overlap.prefetch},
                       {"wrap", options.units.wrap},
                       {"remat", options.remat},
                       {"param_dtype", options.precision.paramDtype},
                       {"reduce_dtype", options.precision.reduceDtype}};
  if (!precision.masterWeights)
    info.textSettings.insert(info.textSettings.end(),
                             {{"master_weights", "off"},
                              {"stochastic_rounding", options.optimizer.stochasticRounding ? "on" : "off"}});
  info.textSettings.insert(info.textSettings.end(), options.runTexts.begin(), options.runTexts.end());
  return info;
}

absl::StatusOr<proto::Plan> emit(ModuleOp module, const PlanInfo &info, const FirstError &error) {
  proto::Plan plan;
  if (failed(emitPlan(module, info, plan)))
    return absl::InvalidArgumentError(error.text());
  return plan;
}

size_t numberOf(StringRef name) {
  return llvm::find_if(phases(), [&](const Phase &phase) { return phase.name == name; }) - phases().begin();
}

/// Gives what is decided by cost or within a budget the mesh of the target's nodes, unless one was given.
absl::Status settleMesh(CompileOptions &options) {
  const Strategy *strategy = lookupStrategy(options.strategy);
  bool needed =
      options.overlap.prefetch == "auto" || options.overlap.memoryBudget != 0 || isBudget(options.remat);
  if (!needed || options.mesh)
    return absl::OkStatus();
  if (!strategy)
    return absl::InvalidArgumentError("unknown strategy '" + options.strategy + "'");
  int perNode = static_cast<int>(options.overlap.target.ranks_per_node());
  FT_ASSIGN_OR_RETURN(const Mesh mesh, MeshFor({.shards = strategy->axes != Axes::Replica,
                                                .two_axes = strategy->axes == Axes::Both,
                                                .strategy = std::string_view(strategy->name)},
                                               options.worldSize, std::min(options.worldSize, perNode)));
  options.mesh = {mesh.replica, mesh.shard};
  return absl::OkStatus();
}

absl::StatusOr<BoundPlan> bindForBudget(const proto::Plan &plan, const CompileOptions &options) {
  Mesh mesh{options.mesh->first, options.mesh->second};
  return BindPlan(plan, mesh, DeviceOf(options.overlap.target));
}

/// What the plan says about what it was compiled for; `wanted` as the user has it.
void recordTarget(const CompileOptions &wanted, proto::Plan &plan) {
  *plan.mutable_target() = wanted.overlap.target;
  proto::Plan::Ranks &ranks = *plan.mutable_compiled_for();
  ranks.set_world_size(wanted.mesh ? wanted.mesh->first * wanted.mesh->second : wanted.worldSize);
  if (!wanted.mesh)
    return;
  ranks.set_replica(wanted.mesh->first);
  ranks.set_shard(wanted.mesh->second);
}

/// Ahead of phase schedule: lowers the budget that prefetch=auto plans with until what it makes fits the one
/// that was asked for, packed in an arena. With another prefetch, or no room even without any, an error that
/// names what is needed.
absl::Status meetMemoryBudget(ModuleOp module, CompileOptions &options, const FirstError &error) {
  const uint64_t budget = options.overlap.memoryBudget;
  auto arenaWith = [&](uint64_t planned) -> absl::StatusOr<uint64_t> {
    CompileOptions trial = options;
    trial.overlap.memoryBudget = planned;
    OwningOpRef<ModuleOp> copy(module.clone());
    for (const Phase &phase : phases().drop_front(numberOf("schedule")))
      FT_RETURN_IF_ERROR(runPhase(phase, *copy, trial, error));
    FT_ASSIGN_OR_RETURN(const proto::Plan plan, emit(*copy, describe(trial), error));
    FT_ASSIGN_OR_RETURN(const BoundPlan bound, bindForBudget(plan, trial));
    return bound.arena_bytes();
  };
  constexpr int kTrials = 6;
  uint64_t planned = budget, smallest = std::numeric_limits<uint64_t>::max();
  for (int trial = 0; trial < kTrials && planned > 0; ++trial) {
    FT_ASSIGN_OR_RETURN(const uint64_t arena, arenaWith(planned));
    if (arena <= budget) {
      options.overlap.memoryBudget = planned;
      return absl::OkStatus();
    }
    smallest = std::min(smallest, arena);
    // The last trial moves nothing that takes memory.
    planned = trial + 2 < kTrials && planned > arena - budget ? planned - (arena - budget) : 1;
  }
  return absl::InvalidArgumentError("--memory-budget=" + std::to_string(budget) +
                                    " is too small: with --prefetch=" + options.overlap.prefetch +
                                    " the arena of a rank has " + std::to_string(smallest) +
                                    " bytes; --remat, --offload or a sharding strategy need less");
}

/// Marks what is recomputed and offloaded, ahead of phase remat. Returns the seconds that this adds to a
/// step.
absl::StatusOr<double> meetBudget(ModuleOp module, const CompileOptions &options, const FirstError &error) {
  FT_ASSIGN_OR_RETURN(RematPolicy policy, parseRematPolicy(options.remat));
  const std::string &dtype = options.precision.paramDtype;
  BudgetProblem problem{.bytes = policy.bytes,
                        .worldSize = options.worldSize,
                        .mesh = Mesh{options.mesh->first, options.mesh->second},
                        .offload = options.offload.activations,
                        .dtype = dtype == "bf16"   ? proto::BF16
                                 : dtype == "fp16" ? proto::F16
                                                   : proto::F32,
                        .target = &options.overlap.target};
  auto compileRest = [&](ModuleOp copy) -> absl::StatusOr<proto::Plan> {
    for (const Phase &phase : phases().drop_front(numberOf("remat")))
      FT_RETURN_IF_ERROR(runPhase(phase, copy, options, error));
    return emit(copy, PlanInfo(), error);
  };
  FT_ASSIGN_OR_RETURN(BudgetSolution solution, solveBudget(module, problem, compileRest));
  return solution.extraSeconds;
}

} // namespace

absl::StatusOr<proto::Plan> compileModel(const std::string &path, const CompileOptions &wanted,
                                         const PhaseObserver &observe) {
  CompileOptions options = wanted;
  DialectRegistry registry;
  registry.insert<func::FuncDialect, mlir::ft::FtDialect, ftx::FtxDialect>();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  FirstError error(&context);
  FT_ASSIGN_OR_RETURN(OwningOpRef<ModuleOp> module, parseModel(path, options.units.frozen, &context, error));
  FT_RETURN_IF_ERROR(settleMesh(options));
  PlanInfo info = describe(options);
  size_t remat = numberOf("remat"), schedule = numberOf("schedule");
  for (auto [number, phase] : llvm::enumerate(phases())) {
    if (number == remat && isBudget(options.remat)) {
      FT_ASSIGN_OR_RETURN(double seconds, meetBudget(*module, options, error));
      info.settings.push_back({"remat_seconds", seconds});
    }
    if (number == schedule && options.overlap.memoryBudget != 0)
      FT_RETURN_IF_ERROR(meetMemoryBudget(*module, options, error));
    FT_RETURN_IF_ERROR(runPhase(phase, *module, options, error));
    FT_RETURN_IF_ERROR(observe(phase, number, *module));
  }
  FT_ASSIGN_OR_RETURN(proto::Plan plan, emit(*module, info, error));
  recordTarget(wanted, plan);
  return plan;
}

} // namespace ft::compiler
