// Inserts what a row of the strategy table asks for.
//
// Enters: units formed, optimizer in place; parameters are read by ft.get. Leaves: each ft.unit with its
// residency; parameters read by ft.view of a shard or of a copy that is released after its last use; flat
// gradients reduced over the ranks, the loss too, sums over slices completed.
#include "compiler/shard/passes.h"

#include "compiler/shard/distribute_directions.h"
#include "compiler/shard/insert_gathers.h"
#include "compiler/shard/insert_reductions.h"
#include "compiler/shard/names.h"
#include "dialects/ft/composites.h"

namespace ft::compiler {

#define GEN_PASS_DEF_INSERTCOLLECTIVESPASS
#include "compiler/shard/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::HostParts;
using mlir::ft::ResidencyAttr;
using mlir::ft::UnitOp;

struct InsertCollectivesPass : impl::InsertCollectivesPassBase<InsertCollectivesPass> {
  using InsertCollectivesPassBase::InsertCollectivesPassBase;

  // The strategy's row, but for units that stay gathered.
  Residency residencyOf(UnitOp unit, const Strategy &row, const NamePatterns &kept) {
    Residency residency = row.residency;
    if (residency.gathered == Gathered::never)
      return residency;
    if (unit.getSmall()) {
      residency.parameters = Extent::whole;
      residency.gathered = Gathered::never;
    } else if (kept.matches(unit.getSymName())) {
      residency.gathered = Gathered::until_backward;
    }
    return residency;
  }

  HostParts hostPartsOf(bool isUpdated) {
    HostParts parts = HostParts::none;
    if (offloadParameters)
      parts |= HostParts::parameters;
    if (offloadOptimizer || offloadStep)
      parts |= HostParts::optimizer;
    if (offloadStep && isUpdated)
      parts |= HostParts::update;
    return parts;
  }

  LogicalResult placeUnits(const Strategy &row) {
    NamePatterns kept(keepGathered);
    llvm::DenseSet<Attribute> updated;
    getOperation().walk([&](mlir::ft::UpdateOp update) { updated.insert(update.getUnitAttr()); });
    for (UnitOp unit : getOperation().getOps<UnitOp>()) {
      Residency residency = residencyOf(unit, row, kept);
      bool isUpdated = updated.contains(FlatSymbolRefAttr::get(unit.getSymNameAttr()));
      unit.setResidencyAttr(ResidencyAttr::get(&getContext(), residency.parameters, residency.gathered,
                                               residency.gradients, residency.optimizer,
                                               hostPartsOf(isUpdated)));
    }
    if (const std::string *unused = kept.firstUnmatched();
        unused && row.residency.gathered != Gathered::never)
      return getOperation().emitError()
             << "no unit is called '" << *unused << "', which keep-gathered asks for";
    return success();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const Strategy *row = lookupStrategy(strategy);
    bool hasPrograms = module.lookupSymbol<func::FuncOp>(mlir::ft::kTrainStepFunction) ||
                       module.lookupSymbol<func::FuncOp>(mlir::ft::kEvalStepFunction);
    if (!row || !hasPrograms) {
      if (!row)
        module.emitError() << "unknown strategy '" << strategy << "'";
      else
        module.emitError() << "no @train_step; run ft-autodiff first";
      return signalPassFailure();
    }
    if (failed(placeUnits(*row)))
      return signalPassFailure();
    SymbolTable symbols(module);
    for (func::FuncOp function : mlir::ft::programsOf(module)) {
      if (function.getSymName() == mlir::ft::kInitFunction)
        continue;
      insertGathers(function, symbols);
      reduceGradients(function, row->axes, symbols, accumulateEach);
      distributeDirections(function);
      gatherUpdated(function, symbols);
      reduceScalars(function, row->axes);
    }
    OpBuilder builder(module);
    module->setAttr("ft.strategy", builder.getStringAttr(row->name));
    module->setAttr("ft.shards_parameters", builder.getBoolAttr(row->residency.parameters == Extent::slice));
    module->setAttr("ft.shards_gradients", builder.getBoolAttr(row->residency.gradients == Extent::slice));
    module->setAttr("ft.shards_optimizer", builder.getBoolAttr(row->residency.optimizer == Extent::slice));
    module->setAttr("ft.two_axes", builder.getBoolAttr(row->axes == Axes::Both));
  }
};

} // namespace
} // namespace ft::compiler
