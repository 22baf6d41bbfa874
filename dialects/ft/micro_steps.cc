// Sums over micro-steps: what adds to them, and that it does so where they lie.
#include "dialects/ft/symbols.h"
#include "dialects/ft/verify.h"

namespace mlir::ft {

static bool isSameUnit(FlatType a, FlatType b) { return a && b && a.getUnit() == b.getUnit(); }

LogicalResult AccumulatedOp::verify() {
  Type from = getX().getType(), to = getResult().getType();
  if (from == to || isSameUnit(dyn_cast<FlatType>(from), dyn_cast<FlatType>(to)))
    return success();
  return emitOpError() << "takes " << from << " but gives " << to
                       << "; only the elements of a flat gradient may be of another type";
}

LogicalResult AccumulatorOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FlatType flat = getFlat().getType();
  UnitOp unit = verify::unit(*this, symbols, flat.getUnit());
  if (!unit)
    return failure();
  if (getName() != flat.getUnit().getValue())
    return emitOpError() << "names the sum of unit \"" << getName() << "\" but gives that of "
                         << flat.getUnit();
  if (flat.getElementType() == unit.accumulateType())
    return success();
  return emitOpError() << "gives elements of type " << flat.getElementType() << "; unit " << flat.getUnit()
                       << " adds micro-steps up in " << unit.accumulateType();
}

MicroStepSumOpInterface microStepSumOf(Value x) {
  for (Operation *user : x.getUsers())
    if (auto sum = dyn_cast<MicroStepSumOpInterface>(user))
      return sum;
  return {};
}

Value sumOverMicroSteps(Value x) {
  MicroStepSumOpInterface sum = microStepSumOf(x);
  return sum && sum->getNumResults() == 1 ? sum->getResult(0) : x;
}

LogicalResult verifyInPlace(Operation *op) {
  auto sum = cast<MicroStepSumOpInterface>(op);
  if (!sum.getInPlace())
    return success();
  auto pack = sum.getX().getDefiningOp<PackOp>();
  if (!pack || !pack.isOfGradients())
    return op->emitOpError("is in_place, but takes no flat gradient that ft.pack makes");
  llvm::SmallDenseSet<Attribute> begun;
  for (auto accumulator : op->getBlock()->getOps<AccumulatorOp>())
    if (accumulator.getName() == sum.getName() && accumulator.getFlat().getType() == sum.getX().getType())
      for (Operation *user : accumulator.getFlat().getUsers())
        if (auto view = dyn_cast<ViewOp>(user); view && !view->use_empty())
          begun.insert(view.getParameterAttr());
  for (Attribute parameter : pack.getParameters())
    if (!begun.contains(parameter))
      return op->emitOpError() << "is in_place, but nothing begins with a view of " << parameter
                               << " in ft.accumulator \"" << sum.getName() << "\" of type "
                               << sum.getX().getType();
  return success();
}

} // namespace mlir::ft
