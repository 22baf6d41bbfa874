// Small simplifications of the graph. No value changes, but for the sign of a zero where 0 is added.
#include "dialects/ft/dialect.h"

namespace mlir::ft {

// a + 0 is a (-0 + 0 would be +0).
OpFoldResult AddOp::fold(FoldAdaptor) {
  auto isZero = [](Value value) {
    auto fill = value.getDefiningOp<FillOp>();
    return fill && fill.getValue().isZero();
  };
  if (isZero(getB()))
    return getA();
  if (isZero(getA()) && getA().getType() == getB().getType())
    return getB();
  return {};
}

OpFoldResult ScaleOp::fold(FoldAdaptor) {
  if (getFactor().isExactlyValue(1.0))
    return getX();
  return {};
}

OpFoldResult BroadcastOp::fold(FoldAdaptor) {
  if (getX().getType() == getType())
    return getX();
  return {};
}

OpFoldResult SumLeadingOp::fold(FoldAdaptor) {
  if (getX().getType() == getType())
    return getX();
  return {};
}

} // namespace mlir::ft
