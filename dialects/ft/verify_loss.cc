// Verifiers of losses and of the latent variable's ops.
#include "dialects/ft/verify.h"

namespace mlir::ft {

LogicalResult verify::targets(Operation *op, llvm::StringRef name, Value values, Value targets) {
  if (failed(verify::minRank(op, name, values, 1, "[..., columns]")))
    return failure();
  std::string why = ("one per row of " + name + ", which is " + shapeText(values.getType())).str();
  return verify::shapeIs(op, "targets", targets, verify::shape(values).drop_back(), why);
}

namespace {

// x [..., D], weight [V, D], targets [...].
LogicalResult verifyLinear(Operation *op, Value x, Value weight, Value targets) {
  if (failed(verify::rank(op, "weight", weight, 2, "[vocabulary, width]")) ||
      failed(verify::targets(op, "x", x, targets)))
    return failure();
  int64_t width = verify::shape(x).back(), columns = verify::shape(weight)[1];
  if (width != columns)
    return op->emitOpError() << "x has " << width << " columns but weight has " << columns << "; x is "
                             << shapeText(x.getType()) << ", weight is " << shapeText(weight.getType());
  return verify::sameElementType(op, "weight", weight, "x", x);
}

// The gradient of the weight is in the type of its reduction.
LogicalResult verifyLinearGradients(Operation *op, Value x, Value weight, Value acc, Value dx,
                                    Value dweight) {
  if (failed(verify::sameType(op, "dx", dx, "x", x)) ||
      failed(verify::shapeIs(op, "dweight", dweight, verify::shape(weight), "the shape of weight")))
    return failure();
  return verify::sameType(op, "acc", acc, "dweight", dweight);
}

LogicalResult verifyTable(Operation *op, Value logits, Value table) {
  if (failed(verify::bits(op, logits)) || failed(verify::rank(op, "table", table, 2, "[2^bits, width]")) ||
      failed(verify::sameElementType(op, "table", table, "logits", logits)))
    return failure();
  int64_t bits = verify::shape(logits).back(), codes = int64_t{1} << bits;
  if (verify::shape(table)[0] == codes)
    return success();
  return op->emitOpError() << "table has " << verify::shape(table)[0] << " rows; expected " << codes
                           << ", one per code of " << bits << " bits";
}

// values [..., D] for logits [..., H] and table [2^H, D].
LogicalResult verifyMapped(Operation *op, llvm::StringRef name, Value values, Value logits, Value table) {
  llvm::SmallVector<int64_t> expected(verify::shape(logits));
  expected.back() = verify::shape(table)[1];
  if (failed(verify::shapeIs(op, name, values, expected, "the positions of logits and the width of table")))
    return failure();
  return verify::sameElementType(op, name, values, "table", table);
}

} // namespace

LogicalResult LinearCrossEntropyOp::verify() {
  return verifyLinear(*this, getX(), getWeight(), getTargets());
}

LogicalResult LinearCrossEntropyGradOp::verify() {
  if (failed(verifyLinear(*this, getX(), getWeight(), getTargets())))
    return failure();
  return verifyLinearGradients(*this, getX(), getWeight(), getAcc(), getDx(), getDweight());
}

LogicalResult LinearCrossEntropyLossGradOp::verify() {
  if (failed(verifyLinear(*this, getX(), getWeight(), getTargets())))
    return failure();
  return verifyLinearGradients(*this, getX(), getWeight(), getAcc(), getDx(), getDweight());
}

LogicalResult BinaryMapperOp::verify() {
  if (failed(verifyTable(*this, getLogits(), getTable())) ||
      failed(verify::shapeIs(*this, "index", getIndex(), verify::shape(getLogits()).drop_back(),
                             "the positions of logits")))
    return failure();
  return verifyMapped(*this, "result", getResult(), getLogits(), getTable());
}

LogicalResult BinaryMapperGradOp::verify() {
  if (failed(verifyTable(*this, getLogits(), getTable())))
    return failure();
  return verifyMapped(*this, "dy", getDy(), getLogits(), getTable());
}

} // namespace mlir::ft
