#include "compiler/remat/training_graph.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace ft::compiler {

using namespace mlir;
using mlir::ft::getLayer;
using mlir::ft::isInPhase;
using mlir::ft::KernelOpInterface;

bool isForward(Operation *op) { return isInPhase(op, mlir::ft::kPhaseForward); }

bool isBackward(Operation *op) { return isInPhase(op, mlir::ft::kPhaseBackward); }

bool isActivationOp(Operation *op) {
  auto kernel = dyn_cast_or_null<KernelOpInterface>(op);
  return kernel && isForward(op) && kernel.isRecomputable() && isMemoryEffectFree(op);
}

TrainingGraph::TrainingGraph(func::FuncOp function) {
  for (Operation &op : function.getBody().front()) {
    if (isBackward(&op))
      backward.push_back(&op);
    // Inputs compute nothing, and in @train_step the optimizer moves them: runs are the same without them in
    // all programs.
    if (!isForward(&op) || isa<mlir::ft::InputOp>(op))
      continue;
    StringAttr layer = getLayer(&op);
    if (layerRuns.empty() || (layer && layer != layerRuns.back().layer))
      layerRuns.push_back({layer, {}});
    runNumbers[&op] = layerRuns.size() - 1;
    positions[&op] = positions.size();
    layerRuns.back().ops.push_back(&op);
  }
  assignBackward();
}

void TrainingGraph::assignBackward() {
  llvm::DenseMap<Attribute, SmallVector<unsigned, 2>> runsOf; // by layer, ascending
  for (auto [run, its] : llvm::enumerate(layerRuns))
    if (its.layer)
      runsOf[its.layer].push_back(run);
  unsigned current = layerRuns.size();
  for (Operation *op : backward) {
    StringAttr layer = getLayer(op);
    auto known = layer ? runsOf.find(layer) : runsOf.end();
    if (known != runsOf.end()) {
      SmallVector<unsigned, 2> &runs = known->second;
      while (runs.size() > 1 && runs.back() > current)
        runs.pop_back();
      if (runs.back() <= current)
        current = runs.back();
    }
    if (!layerRuns.empty())
      backwardRuns.push_back({op, std::min<unsigned>(current, layerRuns.size() - 1)});
  }
}

ArrayRef<std::pair<Operation *, unsigned>> TrainingGraph::backwardOf(unsigned begin, unsigned end) const {
  auto descends = [](unsigned run) { return [run](const auto &each) { return each.second >= run; }; };
  auto first = std::partition_point(backwardRuns.begin(), backwardRuns.end(), descends(end));
  auto last = std::partition_point(first, backwardRuns.end(), descends(begin));
  return ArrayRef(first, last);
}

bool TrainingGraph::isSaved(Value value) { return llvm::any_of(value.getUsers(), isBackward); }

bool TrainingGraph::isReadOutside(Operation *op, llvm::function_ref<bool(unsigned)> isInside) const {
  return llvm::any_of(op->getUsers(), [&](Operation *user) {
    auto run = runNumbers.find(user);
    return run != runNumbers.end() && !isInside(run->second);
  });
}

SmallVector<Operation *> TrainingGraph::neededBy(ArrayRef<Operation *> readers,
                                                 const llvm::DenseSet<Operation *> &recomputed) const {
  llvm::DenseSet<Operation *> seen;
  SmallVector<Operation *> needed;
  SmallVector<Operation *> open(readers);
  while (!open.empty())
    for (Value operand : open.pop_back_val()->getOperands()) {
      Operation *op = operand.getDefiningOp();
      if (!isActivationOp(op) || !seen.insert(op).second)
        continue;
      needed.push_back(op);
      if (recomputed.contains(op))
        open.push_back(op);
    }
  llvm::sort(needed, [&](Operation *a, Operation *b) { return positions.lookup(a) < positions.lookup(b); });
  return needed;
}

SmallVector<Operation *> TrainingGraph::neededOps(const llvm::DenseSet<Operation *> &recomputed) const {
  return neededBy(backward, recomputed);
}

SmallVector<Operation *> TrainingGraph::neededAtOnce(const llvm::DenseSet<Operation *> &recomputed) const {
  auto isOfLastRun = [&](Operation *op) {
    StringAttr layer = getLayer(op);
    return !layer || layer == layerRuns.back().layer;
  };
  return neededBy(ArrayRef(backward).take_while(isOfLastRun), recomputed);
}

} // namespace ft::compiler
