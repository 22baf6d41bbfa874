// Verifiers of matrix products, norms and elementwise ops.
#include "dialects/ft/verify.h"

namespace mlir::ft {
namespace {

// One element per column of x, of any float type: the gradient of a norm's weight is in the type of its
// reduction. `xName` is what the op calls x.
LogicalResult verifyColumns(Operation *op, llvm::StringRef name, Value value, Value x,
                            llvm::StringRef xName = "x") {
  if (failed(verify::minRank(op, xName, x, 1, "[..., width]")))
    return failure();
  std::string reason = ("the last dimension of " + xName + ", which is ").str() + shapeText(x.getType());
  return verify::shapeIs(op, name, value, verify::shape(x).take_back(1), reason);
}

// weight and bias of a norm.
LogicalResult verifyPerColumn(Operation *op, llvm::StringRef name, Value value, Value x,
                              llvm::StringRef xName = "x") {
  if (failed(verifyColumns(op, name, value, x, xName)))
    return failure();
  return verify::sameElementType(op, name, value, xName, x);
}

LogicalResult verifyEps(Operation *op, const llvm::APFloat &eps) {
  double value = eps.convertToDouble();
  if (value >= 0)
    return success();
  return op->emitOpError() << "eps is " << value << "; expected 0 or more";
}

LogicalResult verifyApproximation(Operation *op, llvm::StringRef approximate) {
  if (approximate == "tanh" || approximate == "none")
    return success();
  return op->emitOpError() << "approximate is \"" << approximate << "\"; expected \"tanh\" or \"none\"";
}

// Operands of a product without transpose_a and its result, [..., N].
struct RowsTimesMatrix {
  Value a, b;
  bool transposeB;
  Value result;
  llvm::StringRef name; // of the result
};

LogicalResult verifyRowsTimesMatrix(Operation *op, const RowsTimesMatrix &product) {
  llvm::ArrayRef<int64_t> a = verify::shape(product.a), b = verify::shape(product.b);
  bool transposed = product.transposeB;
  int64_t summed = b[transposed ? 1 : 0], columns = b[transposed ? 0 : 1];
  if (a.back() != summed) {
    InFlightDiagnostic error = op->emitOpError()
                               << "a has " << a.back() << " columns but b has " << summed
                               << (transposed ? " columns, which transpose_b makes rows" : " rows")
                               << "; a is " << shapeText(a) << ", b is " << shapeText(b);
    if (a.back() == columns)
      error << (transposed ? " (would fit without transpose_b)" : " (would fit with transpose_b)");
    return error;
  }
  llvm::SmallVector<int64_t> expected(a);
  expected.back() = columns;
  return verify::shapeIs(op, product.name, product.result, expected, "the rows of a and the columns of b");
}

// a, b, and without transpose_a their product.
LogicalResult verifyLinear(Operation *op, const RowsTimesMatrix &product) {
  if (failed(verify::minRank(op, "a", product.a, 1, "[..., columns]")) ||
      failed(verify::sameElementType(op, "b", product.b, "a", product.a)) ||
      failed(verify::rank(op, "b", product.b, 2, product.transposeB ? "[N, K]" : "[K, N]")) ||
      failed(verifyRowsTimesMatrix(op, product)))
    return failure();
  return verify::sameElementType(op, product.name, product.result, "a", product.a);
}

// One element per column of the result, of the type of a.
LogicalResult verifyBias(Operation *op, Value bias, Value result, Value a) {
  if (!bias)
    return success();
  if (failed(verify::shapeIs(op, "bias", bias, verify::shape(result).take_back(1),
                             "one element per column of the result")))
    return failure();
  return verify::sameElementType(op, "bias", bias, "a", a);
}

// The result of a product with transpose_a, [M, N].
LogicalResult verifySumOverRows(MatmulOp op) {
  if (op.getTransposeB())
    return op->emitOpError("transpose_a and transpose_b together are not supported");
  llvm::ArrayRef<int64_t> a = verify::shape(op.getA()), b = verify::shape(op.getB());
  if (a.drop_back() != b.drop_back())
    return op->emitOpError() << "with transpose_a, a and b are summed over the same rows; a is "
                             << shapeText(a) << " but b is " << shapeText(b);
  return verify::shapeIs(op, "result", op.getResult(), {a.back(), b.back()}, "the columns of a and of b");
}

} // namespace

LogicalResult MatmulOp::verify() {
  Operation *op = *this;
  if (failed(verify::minRank(op, "a", getA(), 1, "[..., columns]")) ||
      failed(verify::sameElementType(op, "b", getB(), "a", getA())))
    return failure();
  if (getTransposeA()) {
    if (failed(verify::minRank(op, "b", getB(), 1, "[..., columns]")) || failed(verifySumOverRows(*this)))
      return failure();
  } else {
    llvm::StringRef form = getTransposeB() ? "[N, K]" : "[K, N]";
    if (failed(verify::rank(op, "b", getB(), 2, form)) ||
        failed(verifyRowsTimesMatrix(op, {getA(), getB(), getTransposeB(), getResult(), "result"})))
      return failure();
  }
  if (failed(verifyBias(op, getBias(), getResult(), getA())))
    return failure();
  // The gradient of a weight, a sum over rows, is in the type of its reduction.
  if (!getTransposeA() && failed(verify::sameElementType(op, "result", getResult(), "a", getA())))
    return failure();
  return verify::sameType(op, "acc", getAcc(), "the result", getResult());
}

LogicalResult LayerNormOp::verify() {
  if (failed(verifyPerColumn(*this, "weight", getWeight(), getX())) ||
      failed(verifyPerColumn(*this, "bias", getBias(), getX())))
    return failure();
  return verifyEps(*this, getEps());
}

LogicalResult LayerNormGradOp::verify() {
  if (failed(verifyPerColumn(*this, "weight", getWeight(), getX())) ||
      failed(verify::sameType(*this, "dy", getDy(), "x", getX())) ||
      failed(verify::sameType(*this, "dx", getDx(), "x", getX())) ||
      failed(verifyColumns(*this, "dweight", getDweight(), getX())) ||
      failed(verify::sameType(*this, "dbias", getDbias(), "dweight", getDweight())))
    return failure();
  return verifyEps(*this, getEps());
}

LogicalResult RmsNormOp::verify() {
  if (failed(verifyPerColumn(*this, "weight", getWeight(), getX())))
    return failure();
  return verifyEps(*this, getEps());
}

LogicalResult RmsNormGradOp::verify() {
  if (failed(verifyPerColumn(*this, "weight", getWeight(), getX())) ||
      failed(verify::sameType(*this, "dy", getDy(), "x", getX())) ||
      failed(verify::sameType(*this, "dx", getDx(), "x", getX())) ||
      failed(verifyColumns(*this, "dweight", getDweight(), getX())))
    return failure();
  return verifyEps(*this, getEps());
}

LogicalResult AddLayerNormOp::verify() {
  if (failed(verifyPerColumn(*this, "weight", getWeight(), getA(), "a")) ||
      failed(verifyPerColumn(*this, "bias", getBias(), getA(), "a")))
    return failure();
  return verifyEps(*this, getEps());
}

LogicalResult AddRmsNormOp::verify() {
  if (failed(verifyPerColumn(*this, "weight", getWeight(), getA(), "a")))
    return failure();
  return verifyEps(*this, getEps());
}

// Rounded once, to the type of the result.
LogicalResult SumLeadingOp::verify() { return verify::suffixOf(*this, "result", getResult(), "x", getX()); }

LogicalResult GeluOp::verify() { return verifyApproximation(*this, getApproximate()); }

LogicalResult GeluGradOp::verify() { return verifyApproximation(*this, getApproximate()); }

LogicalResult MatmulGeluOp::verify() {
  if (failed(verifyLinear(*this, {getA(), getB(), getTransposeB(), getResult(), "result"})) ||
      failed(verifyBias(*this, getBias(), getResult(), getA())))
    return failure();
  return verify::sameType(*this, "x", getX(), "the result", getResult());
}

LogicalResult MatmulGeluGradOp::verify() {
  return verifyLinear(*this, {getA(), getB(), getTransposeB(), getDx(), "dx"});
}

} // namespace mlir::ft
