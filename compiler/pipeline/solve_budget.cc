// Layers are solved one by one, equal ones once, by playing all choices that make sense
// (compiler/remat/layer_options). How many layers take which is found for a model of the peak: what earlier
// layers have saved, plus a layer's own, plus a rest that is read off a plan (compiler/remat/choice_ladder).
// That gives a ladder of assignments, from the cheapest to the smallest, which does not depend on the budget;
// its rungs are compiled, in the order of a binary search, and the peak is read off their plans. As every
// budget climbs the same ladder in the same way, a larger one stops at the same rung or earlier. Where none
// fits, what the rules (every_n, segments) ask for is tried as well: the smallest arena of all is announced.
#include "compiler/pipeline/solve_budget.h"

#include "compiler/pipeline/layer_chain.h"
#include "compiler/pipeline/op_numbers.h"
#include "compiler/remat/mark_choices.h"
#include "compiler/remat/policy_choices.h"
#include "dialects/ft/composites.h"
#include "runtime/base/status_macros.h"
#include "runtime/cost/kernels.h"
#include "runtime/cost/transfers.h"
#include "runtime/memplan/memplan.h"
#include "runtime/plan/beside_arena.h"

#include <algorithm>
#include <optional>

namespace ft::compiler {

using namespace mlir;

namespace {

constexpr int kRungs = 48;
constexpr int kFinerRungs = 16;
constexpr size_t kLastRungs = 3; // tried for the smallest of all
// How near the ends of the ladder are found, as a part of the arena that keeps everything.
constexpr uint64_t kLimitSteps = 8192;
// Rules that are tried where the ladder ends.
constexpr const char *kRules[] = {"full", "every_n:2", "every_n:3", "every_n:4", "segments:sqrt"};

LayerCosts costsOf(const BudgetProblem &problem) {
  LayerCosts costs;
  bool is16Bit = problem.dtype != proto::F32;
  costs.floatBytes = is16Bit ? 2 : 4;
  costs.device = DeviceOf(*problem.target);
  costs.kernelSeconds = [&problem, is16Bit](Operation *op) {
    auto cost = dyn_cast<mlir::ft::CostOpInterface>(op);
    if (!cost)
      return 0.0;
    uint64_t bytes = cost.getBytes() / (is16Bit ? 2 : 1);
    return KernelSeconds(*problem.target, cost.getFlops(), bytes, problem.dtype);
  };
  if (problem.offload)
    costs.copySeconds = [&problem](uint64_t bytes) { return CopySeconds(*problem.target, bytes); };
  return costs;
}

// Something to compile.
struct Candidate {
  Choices choices;
  double seconds = 0; // over keeping everything
};

// What a rule asks for, with its price.
class Rules {
public:
  Rules(const TrainingGraph &graph, const LayerCosts &costs) : graph(graph), costs(costs) {}

  std::vector<Candidate> candidates() const {
    std::vector<Candidate> result;
    for (const char *rule : kRules) {
      llvm::DenseSet<Operation *> recomputed = recomputedBy(graph, *parseRematPolicy(rule));
      result.push_back(candidateFor(recomputed, {}));
      if (costs.copySeconds)
        result.push_back(candidateFor(recomputed, offloadable(graph, recomputed)));
    }
    if (costs.copySeconds)
      result.push_back(candidateFor({}, offloadable(graph, {})));
    return result;
  }

private:
  Candidate candidateFor(const llvm::DenseSet<Operation *> &recomputed,
                         const llvm::DenseSet<Operation *> &offloaded) const {
    Candidate candidate;
    for (Operation *op : graph.neededOps(recomputed)) {
      if (recomputed.contains(op))
        candidate.seconds += costs.kernelSeconds(op);
      else if (offloaded.contains(op))
        candidate.seconds += 2 * costs.copySeconds(activationBytes(op, costs.floatBytes));
    }
    for (const LayerRun &run : graph.runs())
      for (Operation *op : run.ops)
        candidate.choices.push_back(recomputed.contains(op)  ? Choice::Recompute
                                    : offloaded.contains(op) ? Choice::Offload
                                                             : Choice::Keep);
    return candidate;
  }

  const TrainingGraph &graph;
  const LayerCosts &costs;
};

class Search {
public:
  Search(ModuleOp module, const BudgetProblem &problem, const CompileRest &compile)
      : module(module), problem(problem), compile(compile) {}

  absl::StatusOr<BudgetSolution> run() {
    auto train = module.lookupSymbol<func::FuncOp>(mlir::ft::kTrainStepFunction);
    FT_ASSIGN_OR_RETURN(const MeasuredPlan kept, measure({}));
    if (solution.fits)
      return solution;
    const TrainingGraph graph(train);
    const LayerCosts costs = costsOf(problem);
    const LayerChain chain(graph, costs, liveAtOps(kept, train));
    auto step = std::max<uint64_t>(kept.bound.arena_bytes() / kLimitSteps, kDefaultAlignment);
    auto [lowest, highest] = limitsOf(chain.chain(), static_cast<int64_t>(step));
    Ladder ladder = climb(chain.chain(), lowest, highest, kRungs);
    FT_ASSIGN_OR_RETURN(size_t rung, firstThatFits(chain, ladder));
    if (rung == ladder.size())
      FT_RETURN_IF_ERROR(tryTheSmallest(chain, ladder, Rules(graph, costs).candidates()));
    else if (rung > 0) {
      Ladder finer = climb(chain.chain(), ladder[rung].first, ladder[rung - 1].first, kFinerRungs);
      FT_RETURN_IF_ERROR(firstThatFits(chain, finer).status());
    }
    return solution;
  }

private:
  using Ladder = std::vector<std::pair<int64_t, Assignment>>; // with the limits they were made for

  // By a binary search; the size when none fits.
  absl::StatusOr<size_t> firstThatFits(const LayerChain &chain, const Ladder &ladder) {
    size_t first = 0, fitting = ladder.size();
    while (first < fitting) {
      size_t middle = first + (fitting - first) / 2;
      const Assignment &assignment = ladder[middle].second;
      FT_ASSIGN_OR_RETURN(const bool fits, take({chain.choicesOf(assignment), assignment.seconds}));
      if (fits)
        fitting = middle;
      else
        first = middle + 1;
    }
    return fitting;
  }

  // From the cheapest on until one fits. The last rung has been compiled.
  absl::Status tryTheSmallest(const LayerChain &chain, const Ladder &ladder, std::vector<Candidate> more) {
    for (size_t back = 2; back <= std::min(kLastRungs, ladder.size()); ++back) {
      const Assignment &assignment = ladder[ladder.size() - back].second;
      more.push_back({chain.choicesOf(assignment), assignment.seconds});
    }
    std::stable_sort(more.begin(), more.end(),
                     [](const Candidate &a, const Candidate &b) { return a.seconds < b.seconds; });
    for (const Candidate &candidate : more) {
      FT_ASSIGN_OR_RETURN(const bool fits, take(candidate));
      if (fits)
        break;
    }
    return absl::OkStatus();
  }

  // Whether it fits; it is the solution then, until a cheaper one comes.
  absl::StatusOr<bool> take(const Candidate &candidate) {
    FT_ASSIGN_OR_RETURN(const MeasuredPlan measured, measure(candidate));
    return fits(measured.bound.arena_bytes());
  }

  bool fits(uint64_t arena) const { return arena + solution.besideBytes <= problem.bytes; }

  absl::StatusOr<MeasuredPlan> measure(const Candidate &candidate) {
    ++solution.compilations;
    OwningOpRef<ModuleOp> copy(module.clone());
    applyChoices(*copy, candidate.choices);
    numberOps(copy->lookupSymbol<func::FuncOp>(mlir::ft::kTrainStepFunction));
    MeasuredPlan measured;
    FT_ASSIGN_OR_RETURN(measured.plan, compile(*copy));
    measured.opsOfStep =
        numbersOfInstructions(copy->lookupSymbol<ftx::ProgramOp>(mlir::ft::kTrainStepFunction));
    absl::StatusOr<Mesh> mesh = problem.mesh ? *problem.mesh : MeshFor(measured.plan, problem.worldSize);
    FT_RETURN_IF_ERROR(mesh.status());
    const DeviceClass device = DeviceOf(*problem.target);
    const uint64_t beside = BesideArenaOf(*problem.target, measured.plan, *mesh, device).total();
    solution.besideBytes = beside; // no choice changes it
    FT_ASSIGN_OR_RETURN(measured.bound, BindPlan(measured.plan, *mesh, device,
                                                 problem.bytes - std::min(problem.bytes, beside)));
    const uint64_t arena = measured.bound.arena_bytes();
    if (fits(arena)) {
      solution.fits = true;
      solution.choices = candidate.choices;
      solution.arenaBytes = arena;
      solution.extraSeconds = candidate.seconds;
    } else if (solution.smallestBytes == 0 || arena + beside < solution.smallestBytes) {
      solution.smallestBytes = arena + beside;
      solution.smallestPeak = describePeak(measured);
    }
    return measured;
  }

  ModuleOp module;
  const BudgetProblem &problem;
  const CompileRest &compile;
  BudgetSolution solution;
};

} // namespace

absl::StatusOr<BudgetSolution> searchBudget(ModuleOp module, const BudgetProblem &problem,
                                            const CompileRest &compile) {
  return Search(module, problem, compile).run();
}

void applyChoices(ModuleOp module, const Choices &choices) {
  for (func::FuncOp function : mlir::ft::programsOf(module)) {
    TrainingGraph graph(function);
    if (!graph.hasBackward())
      continue;
    llvm::DenseSet<Operation *> recomputed, offloaded;
    size_t number = 0;
    for (const LayerRun &run : graph.runs())
      for (Operation *op : run.ops) {
        Choice choice = number < choices.size() ? choices[number] : Choice::Keep;
        ++number;
        if (choice == Choice::Recompute)
          recomputed.insert(op);
        if (choice == Choice::Offload)
          offloaded.insert(op);
      }
    markChoices(graph, recomputed, offloaded);
  }
}

absl::Status tooSmall(const std::string &budget, const BudgetSolution &solution, const Target &target) {
  return absl::InvalidArgumentError(
      budget + " cannot be met; the smallest feasible budget is " + std::to_string(solution.smallestBytes) +
      " bytes: " + solution.smallestPeak + besideText(solution.besideBytes, target));
}

std::string besideText(uint64_t bytes, const Target &target) {
  if (bytes == 0)
    return "";
  return "; " + std::to_string(bytes) + " bytes of it lie beside the arena, as " + target.name() +
         " announces";
}

absl::StatusOr<BudgetSolution> solveBudget(ModuleOp module, const BudgetProblem &problem,
                                           const CompileRest &compile) {
  FT_ASSIGN_OR_RETURN(BudgetSolution solution, searchBudget(module, problem, compile));
  if (!solution.fits)
    return tooSmall("--remat=budget:" + std::to_string(problem.bytes), solution, *problem.target);
  applyChoices(module, solution.choices);
  return solution;
}

} // namespace ft::compiler
