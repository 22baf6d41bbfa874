// Inserts what a row of the strategy table asks for.
//
// Enters: units formed, optimizer in place; parameters are read by ft.get. Leaves: each ft.unit with its
// residency; parameters read by ft.view of a shard or of a copy that is released after its last use; flat
// gradients reduced over the ranks, the loss averaged, sums over slices completed.
#include "compiler/shard/passes.h"

#include "compiler/shard/insert_gathers.h"
#include "compiler/shard/insert_reductions.h"
#include "compiler/shard/names.h"
#include "dialects/ft/composites.h"

namespace ft::compiler {

#define GEN_PASS_DEF_INSERTCOLLECTIVESPASS
#include "compiler/shard/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::UnitOp;

// The strategy's row, but for units that stay gathered.
Residency residencyOf(UnitOp unit, const Strategy &strategy, const NamePatterns &keepGathered) {
  Residency residency = strategy.residency;
  if (residency.gathered == Gathered::Never)
    return residency;
  if (unit->hasAttr("persistent")) {
    residency.parameters = Extent::Whole;
    residency.gathered = Gathered::Never;
  } else if (keepGathered.matches(unit.getSymName())) {
    residency.gathered = Gathered::UntilBackward;
  }
  return residency;
}

void describe(UnitOp unit, const UnitPlacement &placement, bool hostOptimizer, bool hostStep) {
  auto text = [&](StringRef name, StringRef value) {
    unit->setAttr(name, StringAttr::get(unit.getContext(), value));
  };
  text("parameters", nameOf(placement.residency.parameters));
  text("gathered", nameOf(placement.residency.gathered));
  text("gradients", nameOf(placement.residency.gradients));
  text("optimizer", nameOf(placement.residency.optimizer));
  if (placement.hostParameters)
    unit->setAttr("host_parameters", UnitAttr::get(unit.getContext()));
  if (hostOptimizer)
    unit->setAttr("host_optimizer", UnitAttr::get(unit.getContext()));
  if (hostStep)
    unit->setAttr(mlir::ft::kHostStepAttr, UnitAttr::get(unit.getContext()));
}

struct InsertCollectivesPass : impl::InsertCollectivesPassBase<InsertCollectivesPass> {
  using InsertCollectivesPassBase::InsertCollectivesPassBase;

  FailureOr<Placements> placeUnits(const Strategy &row) {
    NamePatterns kept(keepGathered);
    Placements placements;
    llvm::DenseSet<Attribute> updated;
    getOperation().walk([&](mlir::ft::UpdateOp update) { updated.insert(update.getUnitAttr()); });
    for (UnitOp unit : getOperation().getOps<UnitOp>()) {
      UnitPlacement placement{residencyOf(unit, row, kept), offloadParameters};
      auto symbol = FlatSymbolRefAttr::get(unit.getSymNameAttr());
      describe(unit, placement, offloadOptimizer || offloadStep, offloadStep && updated.contains(symbol));
      placements[symbol] = placement;
    }
    if (const std::string *unused = kept.firstUnmatched();
        unused && row.residency.gathered != Gathered::Never)
      return getOperation().emitError()
             << "no unit is called '" << *unused << "', which keep-gathered asks for";
    return placements;
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const Strategy *row = lookupStrategy(strategy);
    if (!row || !module.lookupSymbol<func::FuncOp>(mlir::ft::kTrainStepFunction)) {
      if (!row)
        module.emitError() << "unknown strategy '" << strategy << "'";
      else
        module.emitError() << "no @train_step; run ft-autodiff first";
      return signalPassFailure();
    }
    FailureOr<Placements> placements = placeUnits(*row);
    if (failed(placements))
      return signalPassFailure();
    SymbolTable symbols(module);
    for (func::FuncOp function : mlir::ft::programsOf(module)) {
      if (function.getSymName() == mlir::ft::kInitFunction)
        continue;
      insertGathers(function, *placements, symbols);
      reduceGradients(function, row->axes, *placements, accumulateEach);
      reduceScalars(function, row->axes);
    }
    OpBuilder builder(module);
    module->setAttr("ft.strategy", builder.getStringAttr(row->name));
    module->setAttr("ft.shards_parameters", builder.getBoolAttr(row->residency.parameters == Extent::Slice));
    module->setAttr("ft.shards_gradients", builder.getBoolAttr(row->residency.gradients == Extent::Slice));
    module->setAttr("ft.shards_optimizer", builder.getBoolAttr(row->residency.optimizer == Extent::Slice));
    module->setAttr("ft.two_axes", builder.getBoolAttr(row->axes == Axes::Both));
  }
};

} // namespace
} // namespace ft::compiler
