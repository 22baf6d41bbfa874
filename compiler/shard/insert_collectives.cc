// Inserts what a row of the strategy table asks for.
//
// Enters: units formed, optimizer in place; parameters are read by ft.get. Leaves: parameters read by ft.view
// of a shard or of a gathered unit that is released after its last use; flat gradients reduced over the
// ranks, the loss averaged, sums over slices completed.
#include "compiler/shard/passes.h"

#include "compiler/shard/strategy.h"
#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

namespace ft::compiler {

#define GEN_PASS_DEF_INSERTCOLLECTIVESPASS
#include "compiler/shard/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::AllReduceOp;
using mlir::ft::FlatType;
using mlir::ft::GatherOp;
using mlir::ft::GetOp;
using mlir::ft::PackOp;
using mlir::ft::ParameterOp;
using mlir::ft::ReduceScatterOp;
using mlir::ft::ReleaseOp;
using mlir::ft::ShardOp;
using mlir::ft::SliceType;
using mlir::ft::SumSquaresOp;
using mlir::ft::ViewOp;

// One op that reads parameters of a unit.
struct Use {
  Operation *op;
  unsigned position; // in the block
  SmallVector<std::pair<OpOperand *, ParameterOp>> operands;
};

// Uses that share one copy of a unit.
struct Group {
  FlatSymbolRefAttr unit;
  SmallVector<Use *> uses;
};

using UsesByUnit = llvm::MapVector<Attribute, SmallVector<Use, 0>>;

// For each position of the block: where the run of ops of one layer that it lies in begins. Ops without layer
// belong to any run.
SmallVector<unsigned> layerRuns(Block &block) {
  SmallVector<unsigned> begin;
  StringAttr current;
  unsigned start = 0, position = 0;
  for (Operation &op : block) {
    StringAttr layer = mlir::ft::getLayer(&op);
    if (layer && layer != current) {
      current = layer;
      start = position;
    }
    begin.push_back(start);
    ++position;
  }
  return begin;
}

UsesByUnit collectUses(Block &block, SymbolTable &symbols) {
  UsesByUnit uses;
  unsigned position = 0;
  for (Operation &op : block) {
    for (OpOperand &operand : op.getOpOperands()) {
      auto get = operand.get().getDefiningOp<GetOp>();
      if (!get)
        continue;
      auto parameter = symbols.lookup<ParameterOp>(get.getParameter());
      SmallVector<Use, 0> &list = uses[parameter.getUnitAttr()];
      if (list.empty() || list.back().op != &op)
        list.push_back({&op, position, {}});
      list.back().operands.push_back({&operand, parameter});
    }
    ++position;
  }
  return uses;
}

SmallVector<Group> formGroups(UsesByUnit &uses, ArrayRef<unsigned> runs, bool released) {
  SmallVector<Group> groups;
  for (auto &[unit, list] : uses) {
    const Use *last = nullptr;
    for (Use &use : list) {
      bool apart = last && released && last->position < runs[use.position];
      if (!last || apart)
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

// Makes the copy that a group reads, points its uses at views of it, and releases it.
void materialise(const Group &group, const Strategy &strategy) {
  Operation *first = group.uses.front()->op, *last = group.uses.back()->op;
  OpBuilder builder(first);
  Type f32 = builder.getF32Type();
  Value whole = ShardOp::create(builder, first->getLoc(),
                                SliceType::get(builder.getContext(), group.unit, f32), group.unit);
  tag(whole.getDefiningOp(), first);
  if (strategy.gathered != Gathered::Never) {
    auto gather = GatherOp::create(builder, first->getLoc(),
                                   FlatType::get(builder.getContext(), group.unit, f32), whole);
    gather->setAttr("axis", builder.getStringAttr(axisName(strategy.axis)));
    tag(gather, first);
    whole = gather;
  }
  llvm::SmallDenseMap<Operation *, Value> views;
  for (Use *use : group.uses) {
    for (auto &[operand, parameter] : use->operands) {
      Value &view = views[parameter];
      if (!view) {
        view = ViewOp::create(builder, first->getLoc(), parameter.getType(), whole,
                              FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
        tag(view.getDefiningOp(), first);
      }
      operand->set(view);
    }
  }
  if (strategy.gathered != Gathered::Never) {
    builder.setInsertionPointAfter(last);
    tag(ReleaseOp::create(builder, last->getLoc(), whole), last);
  }
}

void insertGathers(func::FuncOp function, const Strategy &strategy, SymbolTable &symbols) {
  Block &block = function.getBody().front();
  SmallVector<unsigned> runs = layerRuns(block);
  UsesByUnit uses = collectUses(block, symbols);
  for (const Group &group : formGroups(uses, runs, strategy.gathered == Gathered::Released))
    materialise(group, strategy);
  for (GetOp get : llvm::make_early_inc_range(function.getOps<GetOp>()))
    if (get->use_empty())
      get->erase();
}

// Mean over the ranks of each flat gradient, right after it is packed.
void reduceGradients(func::FuncOp function, const Strategy &strategy) {
  for (PackOp pack : llvm::make_early_inc_range(function.getOps<PackOp>())) {
    OpBuilder builder(pack);
    builder.setInsertionPointAfter(pack);
    auto flat = cast<FlatType>(pack.getFlat().getType());
    Operation *reduction;
    if (strategy.gradients == Extent::Slice)
      reduction = ReduceScatterOp::create(
          builder, pack.getLoc(), SliceType::get(builder.getContext(), flat.getUnit(), flat.getElementType()),
          pack.getFlat());
    else
      reduction = AllReduceOp::create(builder, pack.getLoc(), flat, pack.getFlat());
    reduction->setAttr("axis", builder.getStringAttr(axisName(strategy.axis)));
    tag(reduction, pack);
    pack.getFlat().replaceAllUsesExcept(reduction->getResult(0), reduction);
  }
}

// All-reduces `value` over `axis` right after it is known; every other use sees the result.
void reduceValue(Value value, StringRef axis, StringRef phase) {
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  auto reduction = AllReduceOp::create(builder, value.getLoc(), value.getType(), value);
  reduction->setAttr("axis", builder.getStringAttr(axis));
  mlir::ft::setPhase(reduction, phase);
  value.replaceAllUsesExcept(reduction.getResult(), reduction);
}

struct InsertCollectivesPass : impl::InsertCollectivesPassBase<InsertCollectivesPass> {
  using InsertCollectivesPassBase::InsertCollectivesPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const Strategy *row = lookupStrategy(strategy);
    auto train = module.lookupSymbol<func::FuncOp>(mlir::ft::kTrainStepFunction);
    if (!row || !train) {
      if (!row)
        module.emitError() << "unknown strategy '" << strategy << "'";
      else
        module.emitError() << "no @train_step; run ft-autodiff first";
      return signalPassFailure();
    }
    SymbolTable symbols(module);
    insertGathers(train, *row, symbols);
    reduceGradients(train, *row);

    Operation *terminator = train.getBody().front().getTerminator();
    reduceValue(terminator->getOperand(0), "world", mlir::ft::kPhaseForward); // the loss
    if (row->gradients == Extent::Slice) {
      SumSquaresOp last;
      for (SumSquaresOp op : train.getOps<SumSquaresOp>())
        last = op;
      if (last)
        reduceValue(last.getSum(), axisName(row->axis), mlir::ft::kPhaseOptimizer);
    }
    OpBuilder builder(module);
    module->setAttr("ft.strategy", builder.getStringAttr(row->name));
    module->setAttr("ft.shards_parameters", builder.getBoolAttr(row->parameters == Extent::Slice));
    module->setAttr("ft.shards_gradients", builder.getBoolAttr(row->gradients == Extent::Slice));
    module->setAttr("ft.shards_optimizer", builder.getBoolAttr(row->optimizerState == Extent::Slice));
  }
};

} // namespace
} // namespace ft::compiler
