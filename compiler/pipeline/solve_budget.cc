// Layers are solved one by one, equal ones once, by playing all choices that make sense
// (compiler/remat/layer_options). How many layers take which is found for a model of the peak: what earlier
// layers have saved, plus a layer's own, plus a rest that is read off a plan (compiler/remat/choice_ladder).
// That gives a ladder of assignments, from the cheapest to the smallest, which does not depend on the budget;
// its rungs are compiled, in the order of a binary search, and the peak is read off their plans. As every
// budget climbs the same ladder in the same way, a larger one stops at the same rung or earlier.
#include "compiler/pipeline/solve_budget.h"

#include "compiler/remat/choice_ladder.h"
#include "compiler/remat/layer_options.h"
#include "compiler/remat/mark_choices.h"
#include "runtime/base/status_macros.h"
#include "runtime/memplan/memplan.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/describe.h"
#include "llvm/ADT/DenseMap.h"

#include <algorithm>
#include <memory>
#include <optional>

namespace ft::compiler {

using namespace mlir;

namespace {

constexpr int kRungs = 48;
constexpr int kFinerRungs = 16;
constexpr int kSpans[] = {2, 3, 4, 6, 8, 12};
constexpr size_t kMostOptions = 1200; // of all layers together, but for each at least
constexpr size_t kFewestOptions = 20;
constexpr double kCheap = 0.25;
constexpr int kLastRungs = 3; // of which the smallest is taken for the smallest of all

struct Measured {
  proto::Plan plan;
  BoundPlan bound;
};

// Bytes live at each instruction of a program in buffers that count, and in those that live through all
// programs.
std::vector<uint64_t> liveBytes(const Measured &measured, int program,
                                llvm::function_ref<bool(const proto::Buffer &)> counts) {
  std::vector<uint64_t> live(measured.plan.programs(program).instructions_size() + 1);
  for (int i = 0; i < measured.plan.buffers_size(); ++i) {
    const proto::Buffer &buffer = measured.plan.buffers(i);
    if (buffer.space() != proto::DEVICE || buffer.persistent() ||
        static_cast<int>(buffer.program()) != program || !counts(buffer))
      continue;
    live[buffer.first()] += RoundUp(measured.bound.sizes[i]);
    live[buffer.last() + 1] -= RoundUp(measured.bound.sizes[i]);
  }
  uint64_t now = measured.bound.device.persistent_bytes;
  for (uint64_t &bytes : live)
    bytes = now += bytes;
  return live;
}

int numberOfStep(const proto::Plan &plan) {
  int number = 0;
  while (number < plan.programs_size() && plan.programs(number).name() != mlir::ft::kTrainStepFunction)
    ++number;
  return number;
}

// What is live when the kernel of an op runs, or since that of the op before.
struct LiveAt {
  uint64_t all = 0;
  uint64_t background = 0; // without activations and scratch
};

llvm::DenseMap<Operation *, LiveAt> liveAtOps(const Measured &measured, func::FuncOp train) {
  int number = numberOfStep(measured.plan);
  std::vector<uint64_t> all = liveBytes(measured, number, [](const proto::Buffer &) { return true; });
  std::vector<uint64_t> background = liveBytes(measured, number, [](const proto::Buffer &buffer) {
    return buffer.class_() != proto::ACTIVATIONS && buffer.class_() != proto::WORKSPACE;
  });
  const auto &instructions = measured.plan.programs(number).instructions();
  llvm::DenseMap<Operation *, LiveAt> result;
  int next = 0;
  for (Operation &op : train.getBody().front()) {
    auto kernel = dyn_cast<mlir::ft::KernelOpInterface>(op);
    StringAttr layer = mlir::ft::getLayer(&op), phase = mlir::ft::getPhase(&op);
    if (!kernel || !layer || !phase)
      continue;
    auto isIts = [&](const proto::Instruction &instruction) {
      return instruction.opcode() == proto::KERNEL &&
             StringRef(instruction.kernel()) == kernel.getKernelName() &&
             StringRef(instruction.layer()) == layer && StringRef(instruction.phase()) == phase;
    };
    int own = next;
    while (own < instructions.size() && !isIts(instructions[own]))
      ++own;
    if (own == instructions.size())
      continue; // it became something else
    auto most = [&](const std::vector<uint64_t> &live) {
      return *std::max_element(live.begin() + next, live.begin() + own + 1);
    };
    result[&op] = {most(all), most(background)};
    next = own + 1;
  }
  return result;
}

std::string describePeak(const Measured &measured) {
  const BoundArena &arena = measured.bound.device;
  std::vector<std::pair<uint64_t, int>> live;
  for (int i = 0; i < measured.plan.buffers_size(); ++i) {
    const proto::Buffer &buffer = measured.plan.buffers(i);
    bool now = !buffer.persistent() && buffer.space() == proto::DEVICE &&
               buffer.program() == arena.peak_program && buffer.first() <= arena.peak_instruction &&
               arena.peak_instruction <= buffer.last();
    if (now)
      live.push_back({measured.bound.sizes[i], -i});
  }
  std::sort(live.rbegin(), live.rend());
  std::string text = "its peak is at " +
                     InstructionPlace(measured.plan, static_cast<int>(arena.peak_program),
                                      static_cast<int>(arena.peak_instruction)) +
                     ", with " + std::to_string(arena.persistent_bytes) + " bytes that live through the step";
  for (size_t i = 0; i < std::min<size_t>(live.size(), 4); ++i)
    text += (i == 0 ? "; largest of the others: " : ", ") + BufferName(measured.plan, -live[i].second) + " " +
            std::to_string(live[i].first);
  return text;
}

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

// A training step as a chain of layer runs with options.
class Chain {
public:
  // `kept` is the plan that keeps everything.
  Chain(func::FuncOp function, const BudgetProblem &problem, const Measured &kept)
      : function(function), graph(function), costs(costsOf(problem)), live(liveAtOps(kept, function)) {
    costs.background = [this](Operation *op) { return live.lookup(op).background; };
    unsigned runs = graph.runs().size();
    layers.resize(runs);
    menus.resize(runs);
    // Many layers mix few options as well as one layer chooses among many.
    size_t most = std::clamp<size_t>(kMostOptions / runs, kFewestOptions, 128);
    auto find = [most](const LayerGraph &layer) { return layerOptions(layer, most); };
    for (unsigned run = 0; run < runs; ++run)
      addOptions(run, 1, find);
    for (unsigned run = 0; run + 1 < runs; ++run)
      if (isCheap(run))
        addOptions(run, 2, find);
    for (int span : kSpans)
      for (unsigned run = 0; run + span < runs; ++run)
        if (areEqual(run, span))
          addOptions(run, span, smallestOptions);
    calibrate();
  }

  const std::vector<ChainLayer> &chain() const { return layers; }

  // The choice for each forward op, by its number among all forward ops.
  Choices choicesOf(const Assignment &assignment) const;

private:
  // What the layers' own peaks miss of those of the plan.
  void calibrate() {
    uint64_t saved = 0;
    for (unsigned run = 0; run < layers.size(); ++run) {
      const LayerGraph &layer = *menus[run].front().layer;
      const LayerUse &keep = menus[run].front().option->use;
      uint64_t forward = 0, backward = 0;
      for (auto [number, op] : llvm::enumerate(layer.origins)) {
        uint64_t &most = static_cast<int>(number) < layer.forwardOps ? forward : backward;
        most = std::max(most, live.lookup(op).all);
      }
      if (forward != 0)
        layers[run].forwardRest =
            static_cast<int64_t>(forward) - static_cast<int64_t>(saved + keep.forwardPeak);
      if (backward != 0)
        layers[run].backwardRest =
            static_cast<int64_t>(backward) - static_cast<int64_t>(saved + keep.backwardPeak);
      saved += keep.saved;
    }
  }

  // Look-ups and the like: what such a layer hands on is cheap to compute again for the next one.
  bool isCheap(unsigned run) const {
    double own = forwardSeconds(run);
    return own > 0 && own < kCheap * forwardSeconds(run + 1);
  }

  double forwardSeconds(unsigned run) const {
    const LayerGraph &layer = *menus[run].front().layer;
    double seconds = 0;
    for (int op = 0; op < layer.forwardOps; ++op)
      seconds += layer.ops[op].seconds;
    return seconds;
  }

  // Layers whose graphs are equal share the options that were found for the first.
  struct Class {
    LayerGraph graph;
    int span;
    std::vector<LayerOption> options;
  };
  struct Entry {
    const LayerGraph *layer;
    const LayerOption *option;
  };

  bool areEqual(unsigned run, int span) const {
    for (int i = 1; i < span; ++i)
      if (classOf[run + i] != classOf[run])
        return false;
    return true;
  }

  template <typename FindOptions> void addOptions(unsigned run, int span, FindOptions find) {
    cuts.push_back(std::make_unique<LayerGraph>(cutLayers(function, graph, run, run + span, costs)));
    const LayerGraph &cut = *cuts.back();
    auto known = llvm::find_if(
        classes, [&](const auto &each) { return each->span == span && each->graph.sameAs(cut); });
    if (known == classes.end()) {
      classes.push_back(std::make_unique<Class>(Class{cut, span, find(cut)}));
      known = classes.end() - 1;
    }
    if (span == 1)
      classOf.push_back(known->get());
    for (const LayerOption &option : (*known)->options) {
      const LayerUse &use = option.use;
      layers[run].options.push_back({use.saved, use.forwardPeak, use.backwardPeak, use.seconds, span});
      menus[run].push_back({&cut, &option});
    }
  }

  func::FuncOp function;
  TrainingGraph graph;
  LayerCosts costs;
  llvm::DenseMap<Operation *, LiveAt> live; // in the plan that keeps everything
  std::vector<std::unique_ptr<Class>> classes;
  std::vector<std::unique_ptr<LayerGraph>> cuts;
  std::vector<const Class *> classOf;    // by run
  std::vector<ChainLayer> layers;        // by run
  std::vector<std::vector<Entry>> menus; // by run, parallel to the options of `layers`
};

Choices Chain::choicesOf(const Assignment &assignment) const {
  Choices choices;
  llvm::DenseMap<Operation *, Choice> byOp;
  for (auto [run, option] : llvm::enumerate(assignment.options)) {
    if (option < 0)
      continue;
    const Entry &entry = menus[run][option];
    for (auto [choice, op] : llvm::zip_first(entry.option->choices, entry.layer->origins))
      byOp[op] = choice;
  }
  for (const LayerRun &run : graph.runs())
    for (Operation *op : run.ops)
      choices.push_back(byOp.lookup(op));
  return choices;
}

class Solver {
public:
  Solver(ModuleOp module, const BudgetProblem &problem, const CompileRest &compile)
      : module(module), problem(problem), compile(compile) {}

  absl::StatusOr<BudgetSolution> solve() {
    auto train = module.lookupSymbol<func::FuncOp>(mlir::ft::kTrainStepFunction);
    mark({});
    FT_ASSIGN_OR_RETURN(Measured kept, measure());
    if (kept.bound.arena_bytes() <= problem.bytes)
      return BudgetSolution{kept.bound.arena_bytes(), 0, compilations};
    Chain chain(train, problem, kept);
    FT_ASSIGN_OR_RETURN(Ladder ladder, makeLadder(chain));
    FT_ASSIGN_OR_RETURN(size_t rung, search(chain, ladder));
    if (rung > 0) {
      Ladder finer = climb(chain.chain(), ladder[rung].first, ladder[rung - 1].first, kFinerRungs);
      finer.push_back(ladder[rung]);
      ladder = std::move(finer);
      FT_ASSIGN_OR_RETURN(rung, search(chain, ladder));
    }
    mark(chain.choicesOf(ladder[rung].second));
    return BudgetSolution{fittingBytes, ladder[rung].second.seconds, compilations};
  }

private:
  using Ladder = std::vector<std::pair<int64_t, Assignment>>;

  // Down to the assignment that needs least memory, which must fit.
  absl::StatusOr<Ladder> makeLadder(const Chain &chain) {
    auto [lowest, highest] = limitsOf(chain.chain(), static_cast<int64_t>(kDefaultAlignment));
    Ladder ladder = climb(chain.chain(), lowest, highest, kRungs);
    std::optional<Measured> smallest;
    size_t end = ladder.size();
    for (size_t rung = ladder.size() - std::min<size_t>(kLastRungs, ladder.size()); rung < ladder.size();
         ++rung) {
      mark(chain.choicesOf(ladder[rung].second));
      FT_ASSIGN_OR_RETURN(Measured measured, measure());
      if (smallest && smallest->bound.arena_bytes() <= measured.bound.arena_bytes())
        continue;
      smallest = std::move(measured);
      end = rung + 1;
    }
    ladder.resize(end);
    if (smallest->bound.arena_bytes() > problem.bytes)
      return absl::InvalidArgumentError("--remat=budget:" + std::to_string(problem.bytes) +
                                        " cannot be met; the smallest feasible budget is " +
                                        std::to_string(smallest->bound.arena_bytes()) +
                                        " bytes: " + describePeak(*smallest));
    fittingBytes = smallest->bound.arena_bytes();
    return ladder;
  }

  // The first rung that fits, if rungs needed less and less; the last one fits.
  absl::StatusOr<size_t> search(const Chain &chain, const Ladder &ladder) {
    size_t first = 0, fitting = ladder.size() - 1;
    while (first < fitting) {
      size_t middle = first + (fitting - first) / 2;
      mark(chain.choicesOf(ladder[middle].second));
      FT_ASSIGN_OR_RETURN(Measured measured, measure());
      if (measured.bound.arena_bytes() <= problem.bytes) {
        fitting = middle;
        fittingBytes = measured.bound.arena_bytes();
      } else {
        first = middle + 1;
      }
    }
    return fitting;
  }

  // Marks every training function; they have the same forward ops.
  void mark(const Choices &choices) {
    for (auto function : module.getOps<func::FuncOp>()) {
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

  absl::StatusOr<Measured> measure() {
    ++compilations;
    OwningOpRef<ModuleOp> copy(module.clone());
    Measured measured;
    FT_ASSIGN_OR_RETURN(measured.plan, compile(*copy));
    absl::StatusOr<Mesh> mesh = problem.mesh ? *problem.mesh : MeshFor(measured.plan, problem.worldSize);
    FT_RETURN_IF_ERROR(mesh.status());
    FT_ASSIGN_OR_RETURN(measured.bound, BindPlan(measured.plan, *mesh, DeviceOf(*problem.target)));
    return measured;
  }

  ModuleOp module;
  const BudgetProblem &problem;
  const CompileRest &compile;
  int compilations = 0;
  uint64_t fittingBytes = 0; // arena of the last assignment that fitted
};

} // namespace

absl::StatusOr<BudgetSolution> solveBudget(ModuleOp module, const BudgetProblem &problem,
                                           const CompileRest &compile) {
  return Solver(module, problem, compile).solve();
}

} // namespace ft::compiler
