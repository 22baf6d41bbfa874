#include "compiler/shard/insert_gathers.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallSet.h"

namespace ft::compiler {
namespace {

using namespace mlir;
using mlir::ft::FetchOp;
using mlir::ft::FlatType;
using mlir::ft::GatherOp;
using mlir::ft::GetOp;
using mlir::ft::ParameterOp;
using mlir::ft::ReleaseOp;
using mlir::ft::ShardOp;
using mlir::ft::SliceType;
using mlir::ft::ViewOp;

// One op that reads parameters of a unit.
struct Use {
  Operation *op;
  unsigned run; // see layerRuns
  SmallVector<std::pair<OpOperand *, ParameterOp>> operands;
};

// Uses that share one copy of a unit.
struct Group {
  FlatSymbolRefAttr unit;
  SmallVector<Use *> uses;
};

using UsesByUnit = llvm::MapVector<Attribute, SmallVector<Use, 0>>;

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
      SmallVector<Use, 0> &list = uses[parameter.getUnitAttr()];
      if (list.empty() || list.back().op != &op)
        list.push_back({&op, run, {}});
      list.back().operands.push_back({&operand, parameter});
    }
  }
  return uses;
}

// Whether a copy has to be made, and given up.
bool isCopied(const UnitPlacement &placement) {
  return placement.residency.gathered != Gathered::Never || placement.hostParameters;
}

// The runs in which units are used of which copies are made, each with those units.
using UnitsByRun = llvm::DenseMap<unsigned, llvm::SmallSet<const void *, 4>>;

UnitsByRun copiedUnitsByRun(const UsesByUnit &uses, const Placements &placements) {
  UnitsByRun runs;
  for (const auto &[unit, list] : uses)
    if (isCopied(placements.lookup(unit)))
      for (const Use &use : list)
        runs[use.run].insert(unit.getAsOpaquePointer());
  return runs;
}

// A run between the two that uses other copies, but not this one.
bool liesApart(Attribute unit, const Use &before, const Use &after, const UnitsByRun &runs) {
  for (unsigned run = before.run + 1; run < after.run; ++run) {
    auto units = runs.find(run);
    if (units != runs.end() && !units->second.contains(unit.getAsOpaquePointer()))
      return true;
  }
  return false;
}

// Steps of the optimizer have copies of their own: those of backward are not kept for them.
bool isOptimizers(const Use &use) {
  StringAttr phase = mlir::ft::getPhase(use.op);
  return phase && phase.getValue() == mlir::ft::kPhaseOptimizer;
}

SmallVector<Group> formGroups(UsesByUnit &uses, const Placements &placements) {
  UnitsByRun runs = copiedUnitsByRun(uses, placements);
  SmallVector<Group> groups;
  for (auto &[unit, list] : uses) {
    UnitPlacement placement = placements.lookup(unit);
    bool released = isCopied(placement) && placement.residency.gathered != Gathered::UntilBackward;
    const Use *last = nullptr;
    for (Use &use : list) {
      if (!last || (released && liesApart(unit, *last, use, runs)) ||
          isOptimizers(*last) != isOptimizers(use))
        groups.push_back({cast<FlatSymbolRefAttr>(unit), {}});
      groups.back().uses.push_back(&use);
      last = &use;
    }
  }
  return groups;
}

// Gives an op the layer and phase of another.
void tag(Operation *op, Operation *like) {
  mlir::ft::setLayer(op, mlir::ft::getLayer(like));
  StringAttr phase = mlir::ft::getPhase(like);
  mlir::ft::setPhase(op, phase ? phase.getValue() : "");
}

// What a group reads: the unit at rest, or a copy made right before the first use.
Value makeCopy(const Group &group, const UnitPlacement &placement) {
  Operation *first = group.uses.front()->op;
  OpBuilder builder(first);
  MLIRContext *context = builder.getContext();
  Type f32 = builder.getF32Type();
  Value atRest =
      ShardOp::create(builder, first->getLoc(), SliceType::get(context, group.unit, f32), group.unit);
  tag(atRest.getDefiningOp(), first);
  if (!isCopied(placement))
    return atRest;
  auto flat = FlatType::get(context, group.unit, f32);
  Operation *copy;
  if (placement.residency.gathered == Gathered::Never) {
    copy = FetchOp::create(builder, first->getLoc(), flat, atRest);
  } else {
    copy = GatherOp::create(builder, first->getLoc(), flat, atRest);
    copy->setAttr("axis", builder.getStringAttr("shard"));
  }
  tag(copy, first);
  return copy->getResult(0);
}

void materialise(const Group &group, const UnitPlacement &placement) {
  Value whole = makeCopy(group, placement);
  OpBuilder builder(group.uses.front()->op);
  llvm::SmallDenseMap<Operation *, Value> views;
  for (Use *use : group.uses) {
    for (auto &[operand, parameter] : use->operands) {
      Value &view = views[parameter];
      if (!view) {
        view = ViewOp::create(builder, whole.getLoc(), parameter.getType(), whole,
                              FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
        tag(view.getDefiningOp(), group.uses.front()->op);
      }
      operand->set(view);
    }
  }
  if (!isCopied(placement))
    return;
  Operation *last = group.uses.back()->op;
  builder.setInsertionPointAfter(last);
  tag(ReleaseOp::create(builder, last->getLoc(), whole), last);
}

} // namespace

void insertGathers(func::FuncOp function, const Placements &placements, SymbolTable &symbols) {
  UsesByUnit uses = collectUses(function.getBody().front(), symbols);
  for (const Group &group : formGroups(uses, placements))
    materialise(group, placements.lookup(group.unit));
  for (GetOp get : llvm::make_early_inc_range(function.getOps<GetOp>()))
    if (get->use_empty())
      get->erase();
}

} // namespace ft::compiler
