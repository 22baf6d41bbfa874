#include "compiler/remat/policy_choices.h"

#include "mlir/IR/TypeUtilities.h"

#include <algorithm>
#include <cmath>

namespace ft::compiler {

using namespace mlir;
using Kind = RematPolicy::Kind;
using OpSet = llvm::DenseSet<Operation *>;

namespace {

bool isFloat(Type type) { return isa<FloatType>(getElementTypeOrSelf(type)); }

// Runs that are worth recomputing: they save real numbers that only they read, and backward does not begin
// with them.
SmallVector<unsigned> recomputableRuns(const TrainingGraph &graph) {
  SmallVector<unsigned> result;
  for (auto [index, run] : llvm::enumerate(graph.runs().drop_back())) {
    auto isOwn = [&, self = index](Operation *op) {
      return isActivationOp(op) && llvm::all_of(op->getResultTypes(), isFloat) &&
             llvm::any_of(op->getResults(), TrainingGraph::isSaved) &&
             !graph.isReadOutside(op, [&](unsigned reader) { return reader == self; });
    };
    if (llvm::any_of(run.ops, isOwn))
      result.push_back(index);
  }
  return result;
}

// The number of the group of each run in `runs`.
llvm::DenseMap<unsigned, unsigned> groupsOf(ArrayRef<unsigned> runs, const RematPolicy &policy) {
  size_t count = runs.size();
  size_t groups = policy.count;
  if (groups == 0)
    groups = static_cast<size_t>(std::lround(std::sqrt(static_cast<double>(count))));
  groups = std::clamp<size_t>(groups, 1, std::max<size_t>(count, 1));
  llvm::DenseMap<unsigned, unsigned> result;
  for (auto [index, run] : llvm::enumerate(runs))
    result[run] = policy.kind == Kind::EveryN ? index / policy.count : index * groups / count;
  return result;
}

// All ops of the groups but those that hand results on to others.
OpSet recomputedByGroups(const TrainingGraph &graph, const RematPolicy &policy) {
  llvm::DenseMap<unsigned, unsigned> groups = groupsOf(recomputableRuns(graph), policy);
  OpSet recomputed;
  for (auto [run, group] : groups) {
    auto isInside = [&, own = group](unsigned reader) {
      auto it = groups.find(reader);
      return it != groups.end() && it->second == own;
    };
    for (Operation *op : graph.runs()[run].ops)
      if (isActivationOp(op) && !graph.isReadOutside(op, isInside))
        recomputed.insert(op);
  }
  return recomputed;
}

OpSet recomputedByClass(const TrainingGraph &graph, ArrayRef<std::string> classes) {
  OpSet recomputed;
  for (const LayerRun &run : graph.runs())
    for (Operation *op : run.ops)
      if (isActivationOp(op) &&
          llvm::is_contained(classes, cast<mlir::ft::KernelOpInterface>(op).getOpClass()))
        recomputed.insert(op);
  return recomputed;
}

// Whether `op` makes a part of what backward reads whole, in whatever shape.
bool cutsWhatIsSaved(Operation *op) {
  if (!isActivationOp(op) || !isa<mlir::ft::SliceOp, mlir::ft::SplitOp, mlir::ft::ReshapeOp>(op))
    return false;
  Value whole = op->getOperand(0);
  return whole.getDefiningOp() && (TrainingGraph::isSaved(whole) || cutsWhatIsSaved(whole.getDefiningOp()));
}

// What is computed again cuts again what is kept whole: its parts would be kept beside it.
OpSet withCuts(OpSet recomputed) {
  SmallVector<Operation *> open(recomputed.begin(), recomputed.end());
  while (!open.empty())
    for (Value operand : open.pop_back_val()->getOperands())
      if (Operation *op = operand.getDefiningOp(); op && cutsWhatIsSaved(op) && recomputed.insert(op).second)
        open.push_back(op);
  return recomputed;
}

} // namespace

OpSet recomputedBy(const TrainingGraph &graph, const RematPolicy &policy) {
  switch (policy.kind) {
  case Kind::EveryN:
  case Kind::Segments:
    return recomputedByGroups(graph, policy);
  case Kind::Ops:
    return withCuts(recomputedByClass(graph, policy.classes));
  case Kind::None:
  case Kind::Budget:
    break;
  }
  return {};
}

static bool isScalar(Type type) { return cast<RankedTensorType>(type).getNumElements() == 1; }

OpSet offloadable(const TrainingGraph &graph, const OpSet &recomputed) {
  OpSet result;
  for (Operation *op : graph.neededOps(recomputed))
    if (!llvm::all_of(op->getResultTypes(), isScalar))
      result.insert(op);
  for (Operation *op : graph.neededAtOnce(recomputed))
    result.erase(op);
  return result;
}

} // namespace ft::compiler
