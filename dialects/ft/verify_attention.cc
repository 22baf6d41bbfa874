// Verifiers of attention and rotary embedding.
#include "dialects/ft/verify.h"

#include <cmath>
#include <limits>
#include <optional>

namespace mlir::ft {
namespace {

LogicalResult verifyPositive(Operation *op, llvm::StringRef name, int64_t value) {
  if (value > 0)
    return success();
  return op->emitOpError() << name << " is " << value << "; expected at least 1";
}

// What kernels compute with in f32: a positive normal number.
LogicalResult verifyPositive(Operation *op, llvm::StringRef name, std::optional<llvm::APFloat> value,
                             llvm::StringRef advice) {
  if (!value)
    return success();
  double number = value->convertToDouble();
  if (number >= std::numeric_limits<float>::min() && number <= std::numeric_limits<float>::max())
    return success();
  return op->emitOpError() << name << " is " << number << "; expected a positive finite number, " << advice;
}

// What is said of the scores.
template <typename Attention> LogicalResult verifyScores(Attention op) {
  int64_t window = op.getWindow().value_or(1);
  if (window < 1)
    return op.emitOpError() << "window is " << window
                            << "; expected at least 1, the query's own position, or none for all positions";
  if (failed(verifyPositive(op, "scale", op.getScale(), "or none for 1 / sqrt(head size)")))
    return failure();
  return verifyPositive(op, "softcap", op.getSoftcap(), "or none for scores without a bound");
}

LogicalResult verifyDivisible(Operation *op, llvm::StringRef name, Value value, int64_t heads) {
  int64_t width = verify::shape(value).back();
  if (width % heads == 0)
    return success();
  return op->emitOpError() << name << " has " << width << " columns, which " << heads
                           << " heads do not divide";
}

// Shapes that attention and its gradient share.
LogicalResult verifyHeads(Operation *op, Value q, Value k, Value v, int64_t heads, int64_t kvHeads) {
  if (failed(verifyPositive(op, "heads", heads)) || failed(verifyPositive(op, "kv_heads", kvHeads)) ||
      failed(verify::rank(op, "q", q, 3, "[batch, positions, heads * head size]")) ||
      failed(verifyDivisible(op, "q", q, heads)))
    return failure();
  if (heads % kvHeads != 0)
    return op->emitOpError() << heads << " heads cannot share " << kvHeads << " kv heads evenly";
  llvm::SmallVector<int64_t> expected(verify::shape(q));
  int64_t headSize = expected[2] / heads;
  expected[2] = headSize * kvHeads;
  std::string why = (llvm::Twine(kvHeads) + " kv heads of size " + llvm::Twine(headSize)).str();
  if (failed(verify::shapeIs(op, "k", k, expected, why)) ||
      failed(verify::shapeIs(op, "v", v, expected, why)) ||
      failed(verify::sameElementType(op, "k", k, "q", q)))
    return failure();
  return verify::sameElementType(op, "v", v, "q", q);
}

LogicalResult verifyLse(Operation *op, Value lse, Value out, int64_t heads) {
  llvm::ArrayRef<int64_t> shape = verify::shape(out);
  if (failed(verify::shapeIs(op, "lse", lse, {shape[0], heads, shape[1]}, "[batch, heads, positions]")))
    return failure();
  return verify::isF32(op, "lse", lse);
}

// Shapes that qkv_attention and its gradient share: qkv, and `out`, which is as wide as its queries.
LogicalResult verifyQkv(Operation *op, Value qkv, Value out, int64_t heads, int64_t kvHeads) {
  if (failed(verifyPositive(op, "heads", heads)) || failed(verifyPositive(op, "kv_heads", kvHeads)) ||
      failed(verify::rank(op, "qkv", qkv, 3, "[batch, positions, (heads + 2 kv_heads) * head size]")))
    return failure();
  if (heads % kvHeads != 0)
    return op->emitOpError() << heads << " heads cannot share " << kvHeads << " kv heads evenly";
  if (failed(verifyDivisible(op, "qkv", qkv, heads + 2 * kvHeads)))
    return failure();
  llvm::SmallVector<int64_t> expected(verify::shape(qkv));
  int64_t headSize = expected[2] / (heads + 2 * kvHeads);
  expected[2] = headSize * heads;
  std::string why = (llvm::Twine(heads) + " heads of size " + llvm::Twine(headSize)).str();
  if (failed(verify::shapeIs(op, "out", out, expected, why)))
    return failure();
  return verify::sameElementType(op, "out", out, "qkv", qkv);
}

// What is said of keys and probabilities, when the shapes are known to be right.
template <typename Attention> LogicalResult verifyOptions(Attention op) {
  llvm::ArrayRef<int64_t> shape = verify::shape(op.getOut());
  if (op.getLengths() &&
      failed(verify::shapeIs(op, "lengths", op.getLengths(), {shape[0]}, "one for each example")))
    return failure();
  if (op.getSegments() && failed(verify::shapeIs(op, "segments", op.getSegments(), {shape[0], shape[1]},
                                                 "an id for each position")))
    return failure();
  bool drops = op.getRate().has_value();
  if (drops != static_cast<bool>(op.getRng()) || drops != op.getStream().has_value())
    return op.emitOpError() << "has only some of dropout, rng and stream; expected all of them or none";
  return drops ? failure(failed(verify::dropoutRate(op, *op.getRate())) ||
                         failed(verify::randomState(op, op.getRng())))
               : success();
}

// Heads that are turned.
LogicalResult verifyRotated(Operation *op, Value x, int64_t heads) {
  if (failed(verifyPositive(op, "heads", heads)) ||
      failed(verify::rank(op, "x", x, 3, "[batch, positions, heads * head size]")) ||
      failed(verifyDivisible(op, "x", x, heads)))
    return failure();
  int64_t headSize = verify::shape(x)[2] / heads;
  if (headSize % 2 != 0)
    return op->emitOpError() << "the head size is " << headSize
                             << "; expected an even one, whose halves are rotated";
  return success();
}

LogicalResult verifyBase(Operation *op, const llvm::APFloat &base) {
  if (base.convertToDouble() > 0)
    return success();
  return op->emitOpError() << "base is " << base.convertToDouble() << "; expected a positive number";
}

LogicalResult verifyFrequencies(RotaryTableOp op) {
  ArrayRef<double> frequencies = *op.getFrequencies();
  int64_t half = verify::shape(op.getCosine()).back();
  if (static_cast<int64_t>(frequencies.size()) != half)
    return op.emitOpError() << "has " << frequencies.size() << " frequencies; cosine has " << half
                            << " columns";
  if (!llvm::all_of(frequencies, [](double frequency) { return std::isfinite(frequency); }))
    return op.emitOpError("has a frequency that is not finite");
  return success();
}

} // namespace

LogicalResult RopeOp::verify() {
  return failure(failed(verifyRotated(*this, getX(), getHeads())) || failed(verifyBase(*this, getBase())));
}

LogicalResult RotaryTableOp::verify() {
  if (failed(verify::rank(*this, "cosine", getCosine(), 2, "[positions, half of the head size]")) ||
      failed(verify::isF32(*this, "cosine", getCosine())))
    return failure();
  if (std::optional<llvm::APFloat> scale = getScale(); scale && !scale->isFinite())
    return emitOpError("scale is not finite");
  if (getBase().has_value() == getFrequencies().has_value())
    return emitOpError("needs either base or frequencies, and has ") << (getBase() ? "both" : "neither");
  return getBase() ? verifyBase(*this, *getBase()) : verifyFrequencies(*this);
}

LogicalResult verify::rotation(Operation *op, Value x, Value angles, int64_t heads) {
  if (failed(verifyRotated(op, x, heads)) ||
      failed(verify::minRank(op, "cosine", angles, 2, "[positions, half of the head size]")))
    return failure();
  llvm::SmallVector<int64_t> expected(shape(x));
  expected.back() /= 2 * heads;
  if (tensor(angles).getRank() == 2) // the same for all of the batch
    expected.erase(expected.begin());
  return shapeIs(op, "cosine", angles, expected, "an angle for each pair of a head, at each position");
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyScores(*this)) ||
      failed(verifyHeads(*this, getQ(), getK(), getV(), getHeads(), getKvHeads())) ||
      failed(verify::sameType(*this, "out", getOut(), "q", getQ())) ||
      failed(verifyLse(*this, getLse(), getQ(), getHeads())))
    return failure();
  return verifyOptions(*this);
}

LogicalResult AttentionGradOp::verify() {
  if (failed(verifyScores(*this)) ||
      failed(verifyHeads(*this, getQ(), getK(), getV(), getHeads(), getKvHeads())) ||
      failed(verifyLse(*this, getLse(), getQ(), getHeads())) ||
      failed(verify::sameType(*this, "dout", getDout(), "q", getQ())) ||
      failed(verify::sameType(*this, "out", getOut(), "q", getQ())) ||
      failed(verify::sameType(*this, "dq", getDq(), "q", getQ())) ||
      failed(verify::sameType(*this, "dk", getDk(), "k", getK())) ||
      failed(verify::sameType(*this, "dv", getDv(), "v", getV())))
    return failure();
  return verifyOptions(*this);
}

LogicalResult QkvAttentionOp::verify() {
  if (failed(verifyScores(*this)) || failed(verifyQkv(*this, getQkv(), getOut(), getHeads(), getKvHeads())) ||
      failed(verifyLse(*this, getLse(), getOut(), getHeads())))
    return failure();
  return verifyOptions(*this);
}

LogicalResult QkvAttentionGradOp::verify() {
  if (failed(verifyScores(*this)) || failed(verifyQkv(*this, getQkv(), getOut(), getHeads(), getKvHeads())) ||
      failed(verifyLse(*this, getLse(), getOut(), getHeads())) ||
      failed(verify::sameType(*this, "dout", getDout(), "out", getOut())) ||
      failed(verify::sameType(*this, "dqkv", getDqkv(), "qkv", getQkv())))
    return failure();
  return verifyOptions(*this);
}

} // namespace mlir::ft
