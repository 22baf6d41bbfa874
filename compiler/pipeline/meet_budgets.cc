#include "compiler/pipeline/meet_budgets.h"

#include "compiler/pipeline/run_stages.h"
#include "compiler/pipeline/solve_budget.h"
#include "compiler/remat/policy.h"
#include "runtime/base/status_macros.h"
#include "runtime/cost/simulate.h"
#include "runtime/plan/beside_arena.h"
#include "runtime/plan/bind.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace ft::compiler {

using namespace mlir;

namespace {

// How often the cost model plans anew with fewer bytes, because packing took more than are live at once.
constexpr int kPlannings = 6;
// Less than this part of another's time: more than sums in another order differ by.
constexpr double kFaster = 1 - 1e-9;

Mesh meshOf(const CompileOptions &options) { return {options.mesh->first, options.mesh->second}; }

// A way to schedule transfers, of the options that say how.
struct Rule {
  std::string prefetch;
  uint64_t memoryBudget = 0;
  std::string reason;

  void applyTo(CompileOptions &options) const {
    options.prefetch = prefetch;
    options.memoryBudget = memoryBudget;
    options.scheduleReason = reason;
  }
};

// One of them, compiled.
struct Trial {
  Rule rule;
  uint64_t deviceBytes = 0; // of a rank: its arena, and what the target announces beside it
  double seconds = 0;       // of a step, simulated
};

// Tries schedules of a module that stands ahead of stage schedule.
class ScheduleSearch {
public:
  ScheduleSearch(ModuleOp module, const CompileOptions &options, const FirstError &error)
      : module(module), options(options), error(error) {
    this->options.checks = false;
  }

  /// The fastest within `bytes` (0: any); none when there is none.
  absl::StatusOr<std::optional<Trial>> fastestWithin(uint64_t bytes) {
    limit = bytes == 0 ? std::numeric_limits<uint64_t>::max() : bytes;
    if (options.prefetch != "auto") {
      FT_RETURN_IF_ERROR(consider({options.prefetch, options.memoryBudget, options.scheduleReason}));
      return best;
    }
    FT_RETURN_IF_ERROR(considerByCost(bytes));
    for (const std::string rule : {"pre", "none"})
      FT_RETURN_IF_ERROR(consider({rule, 0, "as with prefetch=" + rule + ", which is faster here"}));
    return best;
  }

  /// Of all that was tried and depends on no budget.
  uint64_t smallestBytes() const { return smallest; }

  /// What of those lies beside the arena.
  uint64_t bytesBeside() const { return beside; }

private:
  // Lowers what the cost model may plan with until its arena fits; at last it moves nothing that takes
  // memory.
  absl::Status considerByCost(uint64_t bytes) {
    uint64_t planned = bytes;
    for (int left = kPlannings; left > 0; --left) {
      const uint64_t known = beside;
      FT_ASSIGN_OR_RETURN(const Trial trial, compile({"auto", planned, ""}));
      take(trial);
      if (beside != known && trial.deviceBytes > limit && beside < bytes) {
        // The first one, which planned with what is not the arena's. It does not count.
        planned = bytes - beside;
        ++left;
        continue;
      }
      if (planned == 1)
        smallest = std::min(smallest, trial.deviceBytes);
      if (trial.deviceBytes <= limit || planned == 1)
        return absl::OkStatus();
      const uint64_t over = trial.deviceBytes - limit;
      planned = left > 2 && planned > over ? planned - over : 1;
    }
    return absl::OkStatus();
  }

  absl::Status consider(const Rule &rule) {
    FT_ASSIGN_OR_RETURN(const Trial trial, compile(rule));
    take(trial);
    smallest = std::min(smallest, trial.deviceBytes);
    return absl::OkStatus();
  }

  void take(const Trial &trial) {
    if (trial.deviceBytes <= limit && (!best || trial.seconds < kFaster * best->seconds))
      best = trial;
  }

  absl::StatusOr<Trial> compile(const Rule &rule) {
    rule.applyTo(options);
    OwningOpRef<ModuleOp> copy(module.clone());
    FT_RETURN_IF_ERROR(runStages(stageNumber("schedule"), stages().size(), *copy, options, error));
    FT_ASSIGN_OR_RETURN(const proto::Plan plan, emit(*copy, PlanInfo(), error));
    const Target &target = options.target;
    FT_ASSIGN_OR_RETURN(const BoundPlan bound, BindPlan(plan, meshOf(options), DeviceOf(target)));
    beside = BesideArenaOf(target, plan, bound.mesh, bound.device_class).total(); // the same for all of them
    return Trial{rule, bound.arena_bytes() + beside, SimulateStep(plan, bound, target).seconds};
  }

  ModuleOp module;
  CompileOptions options;
  const FirstError &error;
  uint64_t limit = 0;
  std::optional<Trial> best;
  uint64_t smallest = std::numeric_limits<uint64_t>::max();
  uint64_t beside = 0; // known from the first trial on
};

// What can be recomputed and offloaded with a rule of prefetching, within `bytes`.
absl::StatusOr<BudgetSolution> solveWith(const std::string &prefetch, uint64_t bytes, ModuleOp module,
                                         CompileOptions options, const FirstError &error) {
  options.prefetch = prefetch;
  options.memoryBudget = 0;
  options.checks = false; // what is chosen is compiled once more, with all of them
  BudgetProblem problem{.bytes = bytes,
                        .worldSize = options.worldSize,
                        .mesh = meshOf(options),
                        .offload = options.offloadActivations,
                        .dtype = options.computeType(),
                        .target = &options.target};
  auto compileRest = [&](ModuleOp copy) -> absl::StatusOr<proto::Plan> {
    FT_RETURN_IF_ERROR(runStages(stageNumber("remat"), stages().size(), copy, options, error));
    return emit(copy, PlanInfo(), error);
  };
  return searchBudget(module, problem, compileRest);
}

// What is left of memory once activations are chosen belongs to the schedule.
absl::Status settleScheduleAfter(ModuleOp marked, uint64_t bytes, CompileOptions &options,
                                 const FirstError &error) {
  OwningOpRef<ModuleOp> copy(marked.clone());
  CompileOptions unchecked = options;
  unchecked.checks = false;
  FT_RETURN_IF_ERROR(runStages(stageNumber("remat"), stageNumber("schedule"), *copy, unchecked, error));
  FT_ASSIGN_OR_RETURN(const std::optional<Trial> best,
                      ScheduleSearch(*copy, options, error).fastestWithin(bytes));
  if (!best)
    return absl::InternalError("a budget that was met is exceeded by every schedule");
  best->rule.applyTo(options);
  return absl::OkStatus();
}

} // namespace

bool isScheduleOpen(const CompileOptions &options) {
  // With a budget of activations it is settled together with them.
  return !isBudget(options.remat) && (options.memoryBudget != 0 || options.prefetch == "auto");
}

absl::Status settleSchedule(ModuleOp module, CompileOptions &options, const FirstError &error) {
  const uint64_t budget = options.memoryBudget;
  ScheduleSearch search(module, options, error);
  FT_ASSIGN_OR_RETURN(const std::optional<Trial> best, search.fastestWithin(budget));
  if (best) {
    best->rule.applyTo(options);
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "--memory-budget=" + std::to_string(budget) + " is too small: with --prefetch=" + options.prefetch +
      (search.bytesBeside() == 0 ? " the arena of a rank has " : " a rank takes ") +
      std::to_string(search.smallestBytes()) + " bytes" + besideText(search.bytesBeside(), options.target) +
      "; --remat, --offload or a sharding strategy need less");
}

absl::StatusOr<double> meetRematBudget(ModuleOp module, CompileOptions &options, const FirstError &error) {
  FT_ASSIGN_OR_RETURN(const RematPolicy policy, parseRematPolicy(options.remat));
  const uint64_t memory = options.memoryBudget;
  const uint64_t bytes = memory == 0 ? policy.bytes : std::min(policy.bytes, memory);
  const bool isAuto = options.prefetch == "auto";
  std::vector<std::string> rules = {options.prefetch};
  if (isAuto)
    rules = {"pre", "none"};
  std::optional<BudgetSolution> solution;
  for (const std::string &rule : rules) {
    FT_ASSIGN_OR_RETURN(BudgetSolution found, solveWith(rule, bytes, module, options, error));
    if (!solution || found.fits || found.smallestBytes < solution->smallestBytes)
      solution = std::move(found);
    if (solution->fits)
      break;
  }
  if (!solution->fits)
    return tooSmall((memory == bytes ? "--memory-budget=" : "--remat=budget:") + std::to_string(bytes),
                    *solution, options.target);
  applyChoices(module, solution->choices);
  if (isAuto)
    FT_RETURN_IF_ERROR(settleScheduleAfter(module, bytes, options, error));
  return solution->extraSeconds;
}

} // namespace ft::compiler
