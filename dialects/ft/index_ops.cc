// Verifiers, derivatives and costs of the primitives that choose by integers.
#include "dialects/ft/elementwise.h"
#include "dialects/ft/verify.h"

namespace mlir::ft {
namespace {

using Gradients = llvm::SmallVector<Value>;
using verify::shape;
using verify::tensor;

// Rows of `a` and `b`, which differ in the last dimension at most.
LogicalResult verifyRows(Operation *op, llvm::StringRef aName, Value a, llvm::StringRef bName, Value b) {
  if (failed(verify::minRank(op, aName, a, 1, "[..., columns]")) ||
      failed(verify::minRank(op, bName, b, 1, "[..., columns]")))
    return failure();
  llvm::SmallVector<int64_t> expected(shape(a));
  expected.back() = shape(b).back();
  return verify::shapeIs(op, bName, b, expected, "the leading dimensions of " + aName);
}

// Never asked for: integers have no gradient.
Gradients none(Operation *op) { return Gradients(op->getNumOperands()); }

} // namespace

//===----------------------------------------------------------------------===//
// gather_elements, scatter_add_elements
//===----------------------------------------------------------------------===//

LogicalResult GatherElementsOp::verify() {
  if (failed(verifyRows(*this, "x", getX(), "ids", getIds())) ||
      failed(verify::sameElementType(*this, "the result", getResult(), "x", getX())))
    return failure();
  return verify::shapeIs(*this, "the result", getResult(), shape(getIds()), "the shape of ids");
}

Gradients GatherElementsOp::buildGradient(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool>,
                                          ValueRange, SmallVectorImpl<bool> &) {
  return {ScatterAddElementsOp::create(builder, getLoc(), getX().getType(), resultGrads[0], getIds()),
          Value()};
}

ElementRole GatherElementsOp::getElementRole(unsigned) { return ElementRole::Activation; }

LogicalResult ScatterAddElementsOp::verify() {
  if (failed(verify::shapeIs(*this, "ids", getIds(), shape(getX()), "the shape of x")))
    return failure();
  return verifyRows(*this, "x", getX(), "the result", getResult());
}

Gradients ScatterAddElementsOp::buildGradient(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool>,
                                              ValueRange, SmallVectorImpl<bool> &) {
  return {GatherElementsOp::create(builder, getLoc(), getX().getType(), resultGrads[0], getIds()), Value()};
}

ElementRole ScatterAddElementsOp::getElementRole(unsigned) { return ElementRole::Rounded; }

//===----------------------------------------------------------------------===//
// cumsum, argsort, histogram
//===----------------------------------------------------------------------===//

LogicalResult CumsumOp::verify() {
  Type element = tensor(getX()).getElementType();
  if (element.isInteger(1))
    return emitOpError("x has elements of type i1; count them with ft.convert to i32 before");
  if (failed(verify::minRank(*this, "x", getX(), 1, "[..., columns]")) ||
      failed(verify::shapeIs(*this, "the result", getResult(), shape(getX()), "the shape of x")))
    return failure();
  bool floats = isa<FloatType>(element) && isa<FloatType>(tensor(getResult()).getElementType());
  return floats ? success() : verify::sameElementType(*this, "the result", getResult(), "x", getX());
}

Gradients CumsumOp::buildGradient(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool>, ValueRange,
                                  SmallVectorImpl<bool> &) {
  return {CumsumOp::create(builder, getLoc(), getX().getType(), resultGrads[0], !getReverse())};
}

ElementRole CumsumOp::getElementRole(unsigned) { return ElementRole::Activation; }

uint64_t CumsumOp::getFlops() { return tensor(getX()).getNumElements(); }

LogicalResult ArgsortOp::verify() {
  if (failed(verifyRows(*this, "x", getX(), "the result", getResult())))
    return failure();
  if (tensor(getX()).getElementType().isInteger(1))
    return emitOpError("x has elements of type i1; make them i32 with ft.convert");
  if (shape(getResult()).back() <= shape(getX()).back())
    return success();
  return emitOpError() << "the result has " << shape(getResult()).back()
                       << " columns; expected no more than x, " << shape(getX()).back();
}

Gradients ArgsortOp::buildGradient(OpBuilder &, ValueRange, ArrayRef<bool>, ValueRange,
                                   SmallVectorImpl<bool> &) {
  return none(*this);
}

ElementRole ArgsortOp::getElementRole(unsigned) { return ElementRole::Activation; }

// A comparison of each with each of its row.
uint64_t ArgsortOp::getFlops() {
  return static_cast<uint64_t>(tensor(getX()).getNumElements() * shape(getX()).back());
}

LogicalResult HistogramOp::verify() { return verify::rank(*this, "the result", getResult(), 1, "[counts]"); }

Gradients HistogramOp::buildGradient(OpBuilder &, ValueRange, ArrayRef<bool>, ValueRange,
                                     SmallVectorImpl<bool> &) {
  return none(*this);
}

ElementRole HistogramOp::getElementRole(unsigned) { return ElementRole::Activation; }

uint64_t HistogramOp::getFlops() { return tensor(getIds()).getNumElements(); }

//===----------------------------------------------------------------------===//
// grouped_dot
//===----------------------------------------------------------------------===//

LogicalResult GroupedDotOp::verify() {
  if (failed(verify::rank(*this, "x", getX(), 2, "[rows, K]")) ||
      failed(verify::rank(*this, "w", getW(), 3, getTransposeB() ? "[groups, N, K]" : "[groups, K, N]")) ||
      failed(verify::sameElementType(*this, "w", getW(), "x", getX())) ||
      failed(verify::shapeIs(*this, "ends", getEnds(), {shape(getW())[0]}, "one for each group of w")))
    return failure();
  int64_t k = shape(getW())[getTransposeB() ? 2 : 1], n = shape(getW())[getTransposeB() ? 1 : 2];
  if (shape(getX())[1] != k)
    return emitOpError() << "sums over " << shape(getX())[1] << " elements of x and " << k << " of w; x is "
                         << shapeText(getX().getType()) << ", w is " << shapeText(getW().getType());
  return verify::shapeIs(*this, "the result", getResult(), {shape(getX())[0], n},
                         "the rows of x and the columns of w");
}

Gradients GroupedDotOp::buildGradient(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                                      ValueRange accumulators, SmallVectorImpl<bool> &accumulated) {
  Value dy = resultGrads[0];
  Gradients gradients(3);
  if (needed[1]) {
    auto [x, of] = getTransposeB() ? std::pair(dy, Value(getX())) : std::pair(Value(getX()), dy);
    gradients[1] =
        GroupedDotGradOp::create(builder, getLoc(), getW().getType(), x, of, getEnds(), accumulators[1]);
    accumulated[1] = accumulators[1] != nullptr;
  }
  if (needed[0])
    gradients[0] =
        GroupedDotOp::create(builder, getLoc(), getX().getType(), dy, getW(), getEnds(), !getTransposeB());
  return gradients;
}

ElementRole GroupedDotOp::getElementRole(unsigned) { return ElementRole::Activation; }

uint64_t GroupedDotOp::getFlops() {
  return 2 * static_cast<uint64_t>(tensor(getResult()).getNumElements() * shape(getX())[1]);
}

uint64_t GroupedDotOp::getModelFlops() { return getFlops(); }

LogicalResult GroupedDotGradOp::verify() {
  if (failed(verify::rank(*this, "x", getX(), 2, "[rows, K]")) ||
      failed(verify::rank(*this, "dy", getDy(), 2, "[rows, N]")) ||
      failed(verify::sameElementType(*this, "dy", getDy(), "x", getX())) ||
      failed(verify::rank(*this, "ends", getEnds(), 1, "[groups]")))
    return failure();
  if (shape(getX())[0] != shape(getDy())[0])
    return emitOpError() << "x has " << shape(getX())[0] << " rows and dy " << shape(getDy())[0];
  if (failed(verify::sameType(*this, "acc", getAcc(), "dw", getDw())))
    return failure();
  return verify::shapeIs(*this, "dw", getDw(), {shape(getEnds())[0], shape(getX())[1], shape(getDy())[1]},
                         "groups, columns of x, columns of dy");
}

ElementRole GroupedDotGradOp::getElementRole(unsigned) { return ElementRole::Rounded; }

uint64_t GroupedDotGradOp::getFlops() {
  return 2 * static_cast<uint64_t>(tensor(getX()).getNumElements() * shape(getDy())[1]);
}

uint64_t GroupedDotGradOp::getModelFlops() { return getFlops(); }

} // namespace mlir::ft
