#include "dialects/ft/verify.h"

#include "runtime/base/cluster_op.h"

namespace mlir::ft::verify {

LogicalResult rank(Operation *op, llvm::StringRef name, Value value, int64_t rank, llvm::StringRef form) {
  if (tensor(value).getRank() == rank)
    return success();
  return op->emitOpError() << name << " is " << shapeText(value.getType()) << "; expected " << rank
                           << (rank == 1 ? " dimension, " : " dimensions, ") << form;
}

LogicalResult minRank(Operation *op, llvm::StringRef name, Value value, int64_t rank, llvm::StringRef form) {
  if (tensor(value).getRank() >= rank)
    return success();
  return op->emitOpError() << name << " is " << shapeText(value.getType()) << "; expected at least " << rank
                           << (rank == 1 ? " dimension, " : " dimensions, ") << form;
}

LogicalResult shapeIs(Operation *op, llvm::StringRef name, Value value, llvm::ArrayRef<int64_t> expected,
                      const llvm::Twine &why) {
  if (shape(value) == expected)
    return success();
  return op->emitOpError() << name << " is " << shapeText(value.getType()) << "; expected "
                           << shapeText(expected) << ", " << why;
}

LogicalResult sameType(Operation *op, llvm::StringRef name, Value value, llvm::StringRef otherName,
                       Value other) {
  if (!value || value.getType() == other.getType())
    return success();
  return op->emitOpError() << name << " is " << value.getType() << "; expected the type of " << otherName
                           << ", " << other.getType();
}

LogicalResult sameElementType(Operation *op, llvm::StringRef name, Value value, llvm::StringRef otherName,
                              Value other) {
  Type element = tensor(value).getElementType(), expected = tensor(other).getElementType();
  if (element == expected)
    return success();
  return op->emitOpError() << name << " has elements of type " << element << "; expected " << expected
                           << ", as " << otherName;
}

LogicalResult isF32(Operation *op, llvm::StringRef name, Value value) {
  Type element = tensor(value).getElementType();
  if (element.isF32())
    return success();
  return op->emitOpError() << name << " has elements of type " << element << "; expected f32";
}

LogicalResult isColumns(Operation *op, llvm::StringRef name, Value value, Value x) {
  if (failed(minRank(op, "x", x, 1, "[..., width]")) ||
      failed(shapeIs(op, name, value, shape(x).take_back(1),
                     "the last dimension of x, which is " + shapeText(x.getType()))))
    return failure();
  return sameElementType(op, name, value, "x", x);
}

LogicalResult isHeldBy(Operation *op, llvm::StringRef name, double value, Type element) {
  double most = isa<FloatType>(element) ? 0x1.fffffep127 : element.isInteger(32) ? 0x1p31 - 1 : 0x1p53;
  if (std::abs(value) <= most) // no NaN
    return success();
  InFlightDiagnostic error = op->emitOpError() << name << " is " << value << "; expected a number ";
  return element.isInteger(64) ? error << "of at most 2^53" : error << "that " << element << " holds";
}

LogicalResult notNegative(Operation *op, llvm::StringRef name, const llvm::APFloat &value) {
  if (value.convertToDouble() >= 0)
    return success();
  return op->emitOpError() << name << " is " << value.convertToDouble() << "; expected 0 or more";
}

LogicalResult bits(Operation *op, Value logits) {
  constexpr int64_t kMaxBits = 24; // which fit an i32; a table of 2^24 rows is far beyond use
  if (failed(minRank(op, "logits", logits, 1, "[..., bits]")))
    return failure();
  int64_t bits = shape(logits).back();
  if (bits <= kMaxBits)
    return success();
  return op->emitOpError() << "logits have " << bits << " bits; expected at most " << kMaxBits;
}

LogicalResult dropoutRate(Operation *op, const llvm::APFloat &rate) {
  double probability = rate.convertToDouble();
  if (probability >= 0 && probability < 1)
    return success();
  return op->emitOpError() << "rate is " << probability << "; expected 0 or more, below 1";
}

LogicalResult randomState(Operation *op, Value rng) {
  auto expected = RankedTensorType::get({::ft::kRandomStateNumbers}, IntegerType::get(op->getContext(), 64));
  if (rng.getType() == expected)
    return success();
  return op->emitOpError() << "rng is " << rng.getType() << "; expected " << expected << ": seed, step, rank";
}

LogicalResult scaler(Operation *op, Value value) {
  if (!value)
    return success();
  return shapeIs(op, "scaler", value, {kScalerNumbers}, "scale, good steps, skipped steps spared");
}

LogicalResult suffixOf(Operation *op, llvm::StringRef name, Value value, llvm::StringRef otherName,
                       Value other) {
  llvm::ArrayRef<int64_t> small = shape(value), large = shape(other);
  if (small.size() <= large.size() && large.take_back(small.size()) == small)
    return success();
  return op->emitOpError() << name << " is " << shapeText(small) << "; expected the shape of " << otherName
                           << ", " << shapeText(large) << ", or its last dimensions";
}

} // namespace mlir::ft::verify
