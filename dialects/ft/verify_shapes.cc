// Verifiers of look-ups, and of ops that cut and join.
#include "dialects/ft/verify.h"

namespace mlir::ft {
namespace {

// Shape of rows [..., D] for ids [...] and a table of width D.
LogicalResult verifyRows(Operation *op, llvm::StringRef name, Value rows, Value ids,
                         llvm::StringRef tableName, Value table) {
  if (failed(verify::rank(op, tableName, table, 2, "[rows, width]")))
    return failure();
  llvm::SmallVector<int64_t> expected(verify::shape(ids));
  expected.push_back(verify::shape(table)[1]);
  return verify::shapeIs(op, name, rows, expected, "the shape of ids and the width of " + tableName);
}

// The parts lie one after the other in dimension `axis` of `whole`; -1 is the last.
LogicalResult verifyParts(Operation *op, llvm::StringRef wholeName, Value whole, ValueRange parts,
                          int64_t axis) {
  if (parts.empty())
    return op->emitOpError("has no parts; expected at least one");
  int64_t rank = verify::tensor(whole).getRank();
  if (rank < 1 || axis < -1 || axis >= rank)
    return op->emitOpError() << "axis is " << axis << "; " << wholeName << " is "
                             << shapeText(whole.getType());
  int64_t joined = axis < 0 ? rank - 1 : axis, extent = 0;
  for (auto [index, part] : llvm::enumerate(parts)) {
    std::string name = ("part #" + llvm::Twine(index)).str();
    if (failed(verify::rank(op, name, part, rank, "as " + wholeName.str())))
      return failure();
    llvm::SmallVector<int64_t> expected(verify::shape(whole));
    expected[joined] = verify::shape(part)[joined];
    if (failed(verify::shapeIs(op, name, part, expected, "the other dimensions of " + wholeName)) ||
        failed(verify::sameElementType(op, name, part, wholeName, whole)))
      return failure();
    extent += expected[joined];
  }
  if (extent == verify::shape(whole)[joined])
    return success();
  return op->emitOpError() << "parts have " << extent << " elements together in dimension " << joined
                           << " but " << wholeName << " has " << verify::shape(whole)[joined];
}

} // namespace

LogicalResult FillOp::verify() {
  return verify::isHeldBy(*this, "value", getValue().convertToDouble(), getElementTypeOrSelf(getType()));
}

LogicalResult IotaOp::verify() { return verify::rank(*this, "result", getResult(), 1, "[count]"); }

LogicalResult EmbeddingOp::verify() {
  if (failed(verifyRows(*this, "result", getResult(), getIds(), "table", getTable())))
    return failure();
  return verify::sameElementType(*this, "result", getResult(), "table", getTable());
}

// The gradient of the table is in the type of its reduction.
LogicalResult EmbeddingGradOp::verify() {
  if (failed(verifyRows(*this, "dy", getDy(), getIds(), "dtable", getDtable())))
    return failure();
  return verify::sameType(*this, "acc", getAcc(), "dtable", getDtable());
}

LogicalResult CopyOp::verify() {
  if (failed(verify::shapeIs(*this, "result", getResult(), verify::shape(getX()), "the shape of x")))
    return failure();
  auto isFloat = [](Value value) { return isa<FloatType>(verify::tensor(value).getElementType()); };
  if (isFloat(getX()) && isFloat(getResult()))
    return success();
  return verify::sameElementType(*this, "result", getResult(), "x", getX());
}

LogicalResult SplitOp::verify() { return verifyParts(*this, "x", getX(), getParts(), -1); }

LogicalResult ConcatOp::verify() {
  return verifyParts(*this, "the result", getResult(), getParts(), getAxis());
}

} // namespace mlir::ft
