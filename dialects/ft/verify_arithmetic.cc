// Verifiers of matrix products.
#include "dialects/ft/verify.h"
#include "runtime/base/float8.h"

namespace mlir::ft {
namespace {

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

// a, b and the result of a product with transpose_a, [M, N].
LogicalResult verifySumOverRows(Operation *op, Value left, Value right, Value result) {
  if (failed(verify::minRank(op, "a", left, 1, "[..., columns]")) ||
      failed(verify::minRank(op, "b", right, 1, "[..., columns]")) ||
      failed(verify::sameElementType(op, "b", right, "a", left)))
    return failure();
  llvm::ArrayRef<int64_t> a = verify::shape(left), b = verify::shape(right);
  if (a.drop_back() != b.drop_back())
    return op->emitOpError() << "with transpose_a, a and b are summed over the same rows; a is "
                             << shapeText(a) << " but b is " << shapeText(b);
  return verify::shapeIs(op, "result", result, {a.back(), b.back()}, "the columns of a and of b");
}

} // namespace

static LogicalResult verifyRounding(MatmulOp op) {
  if (op.getAFormat().has_value() != op.roundsToFloat8() ||
      op.getBFormat().has_value() != op.roundsToFloat8())
    return op.emitOpError("has a_format, b_format and scaling, or none of them");
  if (!op.roundsToFloat8())
    return success();
  for (llvm::StringRef format : {*op.getAFormat(), *op.getBFormat()})
    if (!::ft::Float8Named(format))
      return op.emitOpError() << "rounds to '" << format << "'; expected e4m3 or e5m2";
  if (*op.getScaling() != "tensorwise" && *op.getScaling() != "blockwise")
    return op.emitOpError() << "has scaling '" << *op.getScaling() << "'; expected tensorwise or blockwise";
  if (!cast<RankedTensorType>(op.getA().getType()).getElementType().isBF16())
    return op.emitOpError() << "rounds elements of " << op.getA().getType() << " to 8 bits; expected bf16";
  if (*op.getAFormat() == "e5m2" && *op.getBFormat() == "e5m2")
    return op.emitOpError("rounds both operands to e5m2, which no library multiplies");
  return success();
}

LogicalResult MatmulOp::verify() {
  Operation *op = *this;
  if (failed(verify::minRank(op, "a", getA(), 1, "[..., columns]")) ||
      failed(verify::sameElementType(op, "b", getB(), "a", getA())))
    return failure();
  if (getTransposeA()) {
    if (getTransposeB())
      return emitOpError("transpose_a and transpose_b together are not supported");
    if (failed(verifySumOverRows(op, getA(), getB(), getResult())))
      return failure();
  } else {
    llvm::StringRef form = getTransposeB() ? "[N, K]" : "[K, N]";
    if (failed(verify::rank(op, "b", getB(), 2, form)) ||
        failed(verifyRowsTimesMatrix(op, {getA(), getB(), getTransposeB(), getResult(), "result"})))
      return failure();
  }
  if (failed(verifyBias(op, getBias(), getResult(), getA())) || failed(verifyRounding(*this)))
    return failure();
  // The gradient of a weight, a sum over rows, is in the type of its reduction.
  if (!getTransposeA() && failed(verify::sameElementType(op, "result", getResult(), "a", getA())))
    return failure();
  return verify::sameType(op, "acc", getAcc(), "the result", getResult());
}

LogicalResult MatmulGeluOp::verify() {
  if (failed(verifyLinear(*this, {getA(), getB(), getTransposeB(), getResult(), "result"})) ||
      failed(verifyBias(*this, getBias(), getResult(), getA())))
    return failure();
  return verify::sameType(*this, "x", getX(), "the result", getResult());
}

LogicalResult MatmulGeluGradOp::verify() {
  return verifyLinear(*this, {getA(), getB(), getTransposeB(), getDx(), "dx"});
}

LogicalResult MatmulBiasGradOp::verify() {
  if (!getTransposeA())
    return emitOpError("is of a weight's gradient: it has transpose_a");
  if (failed(verifySumOverRows(*this, getA(), getB(), getResult())) ||
      failed(verify::shapeIs(*this, "sums", getSums(), verify::shape(getSummed()).take_back(1),
                             "the columns of what is summed")))
    return failure();
  if (failed(verify::sameElementType(*this, "sums", getSums(), "the result", getResult())))
    return failure();
  return verify::partialBytes(*this, getPartialBytes());
}

} // namespace mlir::ft
