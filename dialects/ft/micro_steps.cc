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

// A view of `parameter` in the sum's place.
static bool isPlaceOf(Value value, MicroStepSumOpInterface sum, Attribute parameter) {
  auto view = value.getDefiningOp<ViewOp>();
  auto accumulator = view ? view.getFlat().getDefiningOp<AccumulatorOp>() : AccumulatorOp();
  return accumulator && view.getParameterAttr() == parameter && accumulator.getName() == sum.getName() &&
         accumulator.getFlat().getType() == sum.getX().getType();
}

// Whether `value` is that place, or made by an op that takes it, or by a chain of ops which each go on with
// what the one before has made.
static bool beginsWith(Value value, MicroStepSumOpInterface sum, Attribute parameter) {
  while (value && !isPlaceOf(value, sum, parameter)) {
    Operation *maker = value.getDefiningOp();
    if (!maker)
      return false;
    if (llvm::any_of(maker->getOperands(), [&](Value operand) { return isPlaceOf(operand, sum, parameter); }))
      return true;
    auto kernel = dyn_cast<KernelOpInterface>(maker);
    value = kernel ? kernel.getTiedOperand(cast<OpResult>(value).getResultNumber()) : Value();
  }
  return value != nullptr;
}

LogicalResult verifyInPlace(Operation *op) {
  auto sum = cast<MicroStepSumOpInterface>(op);
  if (!sum.getInPlace())
    return success();
  auto pack = sum.getX().getDefiningOp<PackOp>();
  if (!pack || !pack.isOfGradients())
    return op->emitOpError("is in_place, but takes no flat gradient that ft.pack makes");
  for (auto [value, parameter] : llvm::zip_equal(pack.getValues(), pack.getParameters()))
    if (!beginsWith(value, sum, parameter))
      return op->emitOpError() << "is in_place, but what is packed for " << parameter
                               << " does not begin with a view of it in ft.accumulator \"" << sum.getName()
                               << "\" of type " << sum.getX().getType();
  return success();
}

} // namespace mlir::ft
