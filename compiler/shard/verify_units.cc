// Checks what leaves the units stage; changes nothing and uses none of its code.
#include "compiler/shard/passes.h"

#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace ft::compiler {

#define GEN_PASS_DEF_VERIFYUNITSPASS
#include "compiler/shard/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::FlatType;
using mlir::ft::GradientOp;
using mlir::ft::kBlockElements;
using mlir::ft::PackOp;
using mlir::ft::ParameterOp;
using mlir::ft::UnitOp;

using ParametersByUnit = llvm::MapVector<Attribute, SmallVector<ParameterOp>>;

uint64_t endOf(ParameterOp parameter) {
  return *parameter.getOffset() + cast<RankedTensorType>(parameter.getType()).getNumElements();
}

// Parameters by unit, each list in the order of its offsets.
FailureOr<ParametersByUnit> collectParameters(ModuleOp module) {
  ParametersByUnit units;
  for (ParameterOp parameter : module.getOps<ParameterOp>()) {
    if (!parameter.getUnit())
      return parameter.emitError() << "parameter @" << parameter.getSymName() << " lies in no unit";
    units[parameter.getUnitAttr()].push_back(parameter);
  }
  for (auto &[unit, parameters] : units)
    llvm::stable_sort(parameters,
                      [](ParameterOp a, ParameterOp b) { return *a.getOffset() < *b.getOffset(); });
  return units;
}

// Parameters lie one behind the other, and the unit ends with the last one's last block.
LogicalResult verifyLayout(UnitOp unit, ArrayRef<ParameterOp> parameters) {
  if (parameters.empty())
    return unit.emitError() << "unit @" << unit.getSymName() << " has no parameters";
  ParameterOp first = parameters.front();
  uint64_t end = 0;
  for (ParameterOp parameter : parameters) {
    if (*parameter.getOffset() < end)
      return parameter.emitError() << "parameter @" << parameter.getSymName()
                                   << " begins inside of the one before it in unit @" << unit.getSymName();
    if (parameter.getFrozen() != first.getFrozen())
      return parameter.emitError() << "unit @" << unit.getSymName() << " holds frozen and trained parameters";
    end = endOf(parameter);
  }
  uint64_t elements = llvm::alignTo(end, uint64_t(kBlockElements));
  if (unit.getElements() == elements)
    return success();
  return unit.emitError() << "unit @" << unit.getSymName() << " has " << unit.getElements()
                          << " elements; its parameters take " << elements;
}

// The gradients of all parameters of a trained unit are packed once, in their order.
LogicalResult verifyPacks(func::FuncOp train, const ParametersByUnit &units) {
  if (auto left = train.getOps<GradientOp>(); !left.empty())
    return (*left.begin()).emitError("is packed into no unit");
  llvm::SmallDenseSet<Attribute> packed;
  for (PackOp pack : train.getOps<PackOp>()) {
    FlatSymbolRefAttr unit = cast<FlatType>(pack.getFlat().getType()).getUnit();
    if (!packed.insert(unit).second)
      return pack.emitError() << "is a second gradient of unit " << unit;
    SmallVector<Attribute> expected;
    for (ParameterOp parameter : units.lookup(unit))
      expected.push_back(FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
    if (pack.getParameters() != ArrayAttr::get(pack.getContext(), expected))
      return pack.emitError() << "must hold the gradients of all parameters of unit " << unit
                              << ", in the order of their offsets";
  }
  for (const auto &[unit, parameters] : units) {
    ParameterOp first = parameters.front();
    if (first.getFrozen() == packed.contains(unit))
      return first.emitError() << "unit " << unit
                               << (first.getFrozen() ? " is frozen but has a gradient"
                                                     : " is trained but has no gradient");
  }
  return success();
}

struct VerifyUnitsPass : impl::VerifyUnitsPassBase<VerifyUnitsPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto train = module.lookupSymbol<func::FuncOp>(mlir::ft::kTrainStepFunction);
    if (!train) {
      module.emitError("no @train_step; run ft-autodiff first");
      return signalPassFailure();
    }
    FailureOr<ParametersByUnit> units = collectParameters(module);
    if (failed(units))
      return signalPassFailure();
    for (UnitOp unit : module.getOps<UnitOp>())
      if (failed(verifyLayout(unit, units->lookup(FlatSymbolRefAttr::get(unit.getSymNameAttr())))))
        return signalPassFailure();
    if (failed(verifyPacks(train, *units)))
      signalPassFailure();
  }
};

} // namespace
} // namespace ft::compiler
