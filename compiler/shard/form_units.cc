// Forms units.
//
// Enters: @train_step with one ft.gradient per trained parameter. Leaves: every ft.parameter with `unit` and
// `offset`, one ft.unit each, and one ft.pack per unit of trained parameters instead of the ft.gradients.
// Refused: a trained parameter without gradient.
#include "compiler/shard/passes.h"

#include "compiler/shard/group_parameters.h"
#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

namespace ft::compiler {

#define GEN_PASS_DEF_FORMUNITSPASS
#include "compiler/shard/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::GradientOp;
using mlir::ft::kBlockElements;
using mlir::ft::PackOp;
using mlir::ft::ParameterOp;
using mlir::ft::UnitOp;

// Sets `unit` and `offset` of the parameters and makes the ft.unit, before the first parameter of the module.
UnitOp layOut(const ParameterGroup &unit, OpBuilder &builder, SymbolTable &symbols) {
  uint64_t end = 0;
  auto op = UnitOp::create(builder, ParameterOp(unit.parameters.front()).getLoc(), unit.name, /*elements=*/0,
                           unit.rule.empty() ? StringAttr() : builder.getStringAttr(unit.rule));
  symbols.insert(op); // renames it when a parameter has this name already
  for (ParameterOp parameter : unit.parameters) {
    parameter.setUnit(op.getSymName());
    parameter.setOffset(end);
    uint64_t elements = cast<RankedTensorType>(parameter.getType()).getNumElements();
    end += llvm::alignTo(elements, uint64_t(kBlockElements));
  }
  op.setElements(end);
  op.setSmall(unit.small);
  return op;
}

// Replaces the ft.gradients of a unit by one ft.pack after the last of them.
LogicalResult packGradients(const ParameterGroup &unit, UnitOp op,
                            llvm::MapVector<StringRef, GradientOp> &gradients) {
  SmallVector<Value> values;
  SmallVector<Attribute> names;
  Operation *last = nullptr;
  for (ParameterOp parameter : unit.parameters) {
    GradientOp gradient = gradients.lookup(parameter.getSymName());
    if (!gradient)
      return parameter.emitError() << "parameter @" << parameter.getSymName()
                                   << " has no gradient; run ft-autodiff first";
    values.push_back(gradient.getValue());
    names.push_back(FlatSymbolRefAttr::get(parameter.getContext(), parameter.getSymName()));
    if (!last || last->isBeforeInBlock(gradient))
      last = gradient;
  }
  OpBuilder builder(last->getContext());
  builder.setInsertionPointAfter(last);
  auto type = mlir::ft::FlatType::get(builder.getContext(), FlatSymbolRefAttr::get(op.getSymNameAttr()),
                                      getElementTypeOrSelf(values.front().getType()));
  auto pack = PackOp::create(builder, last->getLoc(), type, values, builder.getArrayAttr(names));
  mlir::ft::setLayer(pack, mlir::ft::getLayer(last));
  mlir::ft::setPhase(pack, mlir::ft::kPhaseBackward);
  for (ParameterOp parameter : unit.parameters)
    gradients.lookup(parameter.getSymName())->erase();
  return success();
}

struct FormUnitsPass : impl::FormUnitsPassBase<FormUnitsPass> {
  using FormUnitsPassBase::FormUnitsPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto train = module.lookupSymbol<func::FuncOp>(mlir::ft::kTrainStepFunction);
    if (!train) {
      module.emitError("no @train_step; run ft-autodiff first");
      return signalPassFailure();
    }
    FailureOr<std::vector<ParameterGroup>> groups =
        groupParameters(module, {.wrap = wrap,
                                 .names = wrapNames,
                                 .minNumParams = minNumParams,
                                 .persistenceThreshold = persistenceThreshold});
    if (failed(groups))
      return signalPassFailure();
    const std::vector<ParameterGroup> &units = *groups;
    llvm::MapVector<StringRef, GradientOp> gradients;
    for (GradientOp gradient : train.getOps<GradientOp>())
      gradients[gradient.getParameter()] = gradient;

    SymbolTable symbols(module);
    OpBuilder builder(&getContext());
    builder.setInsertionPoint(units.front().parameters.front());
    for (const ParameterGroup &unit : units) {
      UnitOp op = layOut(unit, builder, symbols);
      if (!unit.frozen && failed(packGradients(unit, op, gradients)))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace ft::compiler
