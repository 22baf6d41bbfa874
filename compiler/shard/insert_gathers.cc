#include "compiler/shard/insert_gathers.h"

#include "compiler/shard/tags.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace ft::compiler {
namespace {

using namespace mlir;
using mlir::ft::FetchOp;
using mlir::ft::FlatType;
using mlir::ft::Gathered;
using mlir::ft::GatherOp;
using mlir::ft::GetOp;
using mlir::ft::ParameterOp;
using mlir::ft::ReleaseOp;
using mlir::ft::ResidencyAttr;
using mlir::ft::ShardOp;
using mlir::ft::SliceType;
using mlir::ft::UnitOp;
using mlir::ft::ViewOp;

// One op that reads parameters of a unit.
struct Use {
  Operation *op;
  unsigned run; // see layerRuns
  SmallVector<std::pair<OpOperand *, ParameterOp>> operands;
};

// Uses that share one copy of a unit.
struct Group {
  UnitOp unit;
  SmallVector<Use *> uses;
};

using UsesByUnit = llvm::MapVector<Operation *, SmallVector<Use, 0>>;

// For each op of the block the number of the run of ops of one layer that it lies in. Ops without layer
// belong to any run.
SmallVector<unsigned> layerRuns(Block &block) {
  SmallVector<unsigned> runs;
  StringAttr current;
  unsigned run = 0;
  for (Operation &op : block) {
    StringAttr layer = mlir::ft::getLayer(&op);
    if (layer && layer != current) {
      run += current != nullptr;
      current = layer;
    }
    runs.push_back(run);
  }
  return runs;
}

UsesByUnit collectUses(Block &block, SymbolTable &symbols) {
  UsesByUnit uses;
  SmallVector<unsigned> runs = layerRuns(block);
  for (auto [op, run] : llvm::zip_equal(block, runs)) {
    for (OpOperand &operand : op.getOpOperands()) {
      auto get = operand.get().getDefiningOp<GetOp>();
      if (!get)
        continue;
      auto parameter = symbols.lookup<ParameterOp>(get.getParameter());
      SmallVector<Use, 0> &list = uses[symbols.lookup<UnitOp>(*parameter.getUnit())];
      if (list.empty() || list.back().op != &op)
        list.push_back({&op, run, {}});
      list.back().operands.push_back({&operand, parameter});
    }
  }
  return uses;
}

// The runs in which units are used of which copies are made, each with those units.
using UnitsByRun = llvm::DenseMap<unsigned, llvm::SmallPtrSet<Operation *, 4>>;

UnitsByRun copiedUnitsByRun(const UsesByUnit &uses) {
  UnitsByRun runs;
  for (const auto &[unit, list] : uses)
    if (cast<UnitOp>(unit).residencyOrWhole().isCopied())
      for (const Use &use : list)
        runs[use.run].insert(unit);
  return runs;
}

// A run between the two that uses other copies, but not this one.
bool liesApart(Operation *unit, const Use &before, const Use &after, const UnitsByRun &runs) {
  for (unsigned run = before.run + 1; run < after.run; ++run) {
    auto units = runs.find(run);
    if (units != runs.end() && !units->second.contains(unit))
      return true;
  }
  return false;
}

// Steps of the optimizer have copies of their own: those of backward are not kept for them.
bool isOptimizers(const Use &use) { return mlir::ft::isInPhase(use.op, mlir::ft::kPhaseOptimizer); }

SmallVector<Group> formGroups(UsesByUnit &uses) {
  UnitsByRun runs = copiedUnitsByRun(uses);
  SmallVector<Group> groups;
  for (auto &[unit, list] : uses) {
    ResidencyAttr residency = cast<UnitOp>(unit).residencyOrWhole();
    bool released = residency.isCopied() && residency.getGathered() != Gathered::until_backward;
    const Use *last = nullptr;
    for (Use &use : list) {
      if (!last || (released && liesApart(unit, *last, use, runs)) ||
          isOptimizers(*last) != isOptimizers(use))
        groups.push_back({cast<UnitOp>(unit), {}});
      groups.back().uses.push_back(&use);
      last = &use;
    }
  }
  return groups;
}

// What a group reads: the unit at rest, or a copy made right before the first use.
Value makeCopy(const Group &group) {
  Operation *first = group.uses.front()->op;
  OpBuilder builder(first);
  MLIRContext *context = builder.getContext();
  Type f32 = builder.getF32Type();
  UnitOp unit = group.unit;
  auto symbol = FlatSymbolRefAttr::get(unit.getSymNameAttr());
  Value atRest = ShardOp::create(builder, first->getLoc(), SliceType::get(context, symbol, f32), symbol);
  tagLike(atRest.getDefiningOp(), first);
  ResidencyAttr residency = unit.residencyOrWhole();
  if (!residency.isCopied())
    return atRest;
  auto flat = FlatType::get(context, symbol, f32);
  Operation *copy;
  if (residency.getGathered() == Gathered::never)
    copy = FetchOp::create(builder, first->getLoc(), flat, atRest);
  else
    copy = GatherOp::create(builder, first->getLoc(), flat, atRest);
  tagLike(copy, first);
  return copy->getResult(0);
}

void materialise(const Group &group) {
  Value whole = makeCopy(group);
  OpBuilder builder(group.uses.front()->op);
  llvm::SmallDenseMap<Operation *, Value> views;
  for (Use *use : group.uses) {
    for (auto &[operand, parameter] : use->operands) {
      Value &view = views[parameter];
      if (!view) {
        view = ViewOp::create(builder, whole.getLoc(), parameter.getType(), whole,
                              FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
        tagLike(view.getDefiningOp(), group.uses.front()->op);
      }
      operand->set(view);
    }
  }
  if (!UnitOp(group.unit).residencyOrWhole().isCopied())
    return;
  Operation *last = group.uses.back()->op;
  builder.setInsertionPointAfter(last);
  tagLike(ReleaseOp::create(builder, last->getLoc(), whole), last);
}

} // namespace

void insertGathers(func::FuncOp function, SymbolTable &symbols) {
  UsesByUnit uses = collectUses(function.getBody().front(), symbols);
  for (const Group &group : formGroups(uses))
    materialise(group);
  for (GetOp get : llvm::make_early_inc_range(function.getOps<GetOp>()))
    if (get->use_empty())
      get->erase();
}

} // namespace ft::compiler
