// FLOPs and bytes of every op. A multiply-add is two FLOPs; exp, log, tanh, erf, a sine, a cosine
// and a division are one each.
// Model FLOPs are those of matrix products that the result needs, as A. Chowdhery et al., PaLM, 2022,
// appendix B, count them for model FLOPs utilisation; of attention the pairs that a mask leaves, or all of
// them where lengths and segments, which come with the data, leave fewer.
#include "dialects/ft/composites.h"
#include "dialects/ft/updates.h"
#include "runtime/base/attention_span.h"

namespace mlir::ft {
namespace {

RankedTensorType tensor(Value value) { return cast<RankedTensorType>(value.getType()); }

uint64_t elements(Value value) { return tensor(value).getNumElements(); }

uint64_t extent(Value value, int64_t dimension) { return tensor(value).getDimSize(dimension); }

uint64_t lastExtent(Value value) { return tensor(value).getShape().back(); }

uint64_t rows(Value value) { return elements(value) / lastExtent(value); }

// Pairs (query, key) of all heads that take part, times the head size. `out` of an attention is as wide as
// its queries.
template <typename Attention> uint64_t attentionPairs(Attention op) {
  uint64_t batch = extent(op.getOut(), 0), positions = extent(op.getOut(), 1), width = extent(op.getOut(), 2);
  return batch * ::ft::SpanOf(positions, op.getCausal(), op.getWindow()).Pairs(positions) * width;
}

// Elements of a unit before padding; 0 when it does not exist. What one rank does is 1/N of the cost when it
// holds a slice.
uint64_t unitElements(Operation *op, FlatSymbolRefAttr unit) {
  auto unitOp = SymbolTable::lookupNearestSymbolFrom<UnitOp>(op, unit);
  return unitOp ? unitOp.getElements() : 0;
}

// Of an element of a flat buffer or of a slice.
uint64_t gradientBytes(Value buffer) {
  Type type = buffer.getType();
  auto flat = dyn_cast<FlatType>(type);
  return (flat ? flat.getElementType() : cast<SliceType>(type).getElementType()).getIntOrFloatBitWidth() / 8;
}

// Of an element of the weights that an optimizer reads and writes.
uint64_t masterBytes(Operation *op, FlatSymbolRefAttr unit) {
  auto unitOp = SymbolTable::lookupNearestSymbolFrom<UnitOp>(op, unit);
  return unitOp ? unitOp.masterType().getIntOrFloatBitWidth() / 8 : 4;
}

FlatSymbolRefAttr unitOf(Value buffer) {
  if (auto flat = dyn_cast<FlatType>(buffer.getType()))
    return flat.getUnit();
  return cast<SliceType>(buffer.getType()).getUnit();
}

uint64_t bytesOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() || !tensor.getElementType().isIntOrFloat())
    return 0;
  return uint64_t(tensor.getNumElements()) * elementBytes(tensor.getElementType());
}

} // namespace

uint64_t bytesOfOperandsAndResults(Operation *op) {
  uint64_t bytes = 0;
  llvm::SmallPtrSet<Value, 8> seen;
  for (Value operand : op->getOperands())
    if (seen.insert(operand).second)
      bytes += bytesOf(operand.getType());
  for (Type type : op->getResultTypes())
    bytes += bytesOf(type);
  return bytes;
}

//===----------------------------------------------------------------------===//
// Look-ups, products
//===----------------------------------------------------------------------===//

uint64_t EmbeddingOp::getFlops() { return 0; }

uint64_t EmbeddingGradOp::getFlops() { return elements(getDy()); }

uint64_t MatmulOp::getFlops() {
  uint64_t summed = getTransposeA() ? rows(getA()) : lastExtent(getA());
  uint64_t outputs = elements(getResult());
  return 2 * outputs * summed + (getBias() ? outputs : 0);
}

// Elements that are rounded are read twice, for the scale and to be rounded; their 8 bits are written and
// read.
uint64_t MatmulOp::getBytes() {
  return bytesOfOperandsAndResults(*this) +
         (roundsToFloat8() ? 4 * (elements(getA()) + elements(getB())) : 0);
}

uint64_t MatmulOp::getModelFlops() { return getFlops() - (getBias() ? elements(getResult()) : 0); }

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

// The product, then what its body does.
uint64_t MatmulGeluOp::getFlops() {
  return getModelFlops() + (getBias() ? elements(getResult()) : 0) + flopsOfBody(*this, getBodyAttr());
}

uint64_t MatmulGeluOp::getModelFlops() { return 2 * elements(getResult()) * lastExtent(getA()); }

uint64_t MatmulGeluGradOp::getFlops() { return getModelFlops() + flopsOfBody(*this, getBodyAttr()); }

uint64_t MatmulGeluGradOp::getModelFlops() { return 2 * elements(getDx()) * lastExtent(getA()); }

// One addition for each element of what is summed.
uint64_t MatmulBiasGradOp::getFlops() { return getModelFlops() + elements(getSummed()); }

uint64_t MatmulBiasGradOp::getModelFlops() { return 2 * elements(getResult()) * rows(getA()); }

// Each of a pair: two products and a sum.
uint64_t RotaryTableOp::getFlops() { return 3 * elements(getCosine()); }
// Of ten rounds for four words, in operations of an element.
uint64_t RandomBitsOp::getFlops() { return 16 * elements(getResult()); }

// Two matrix products over the pairs; the softmax is left out, as it is everywhere in the literature.
uint64_t AttentionOp::getFlops() { return 2 * 2 * attentionPairs(*this); }

uint64_t QkvAttentionOp::getFlops() { return 2 * 2 * attentionPairs(*this); }

// Five: scores again, dv, dp, dq, dk.
uint64_t AttentionGradOp::getFlops() { return 5 * 2 * attentionPairs(*this); }

uint64_t QkvAttentionGradOp::getFlops() { return 5 * 2 * attentionPairs(*this); }

uint64_t AttentionOp::getModelFlops() { return getFlops(); }

uint64_t QkvAttentionOp::getModelFlops() { return getFlops(); }

// The scores were there before.
uint64_t AttentionGradOp::getModelFlops() { return 4 * 2 * attentionPairs(*this); }

uint64_t QkvAttentionGradOp::getModelFlops() { return 4 * 2 * attentionPairs(*this); }

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

uint64_t LinearCrossEntropyOp::getFlops() {
  return rows(getX()) * extent(getWeight(), 0) * (2 * lastExtent(getX()) + 4);
}

// Logits again, dx, dweight: three products.
uint64_t LinearCrossEntropyGradOp::getFlops() {
  return rows(getX()) * extent(getWeight(), 0) * (6 * lastExtent(getX()) + 6);
}

uint64_t LinearCrossEntropyLossGradOp::getFlops() {
  return rows(getX()) * extent(getWeight(), 0) * (6 * lastExtent(getX()) + 6);
}

uint64_t LinearCrossEntropyOp::getModelFlops() {
  return rows(getX()) * extent(getWeight(), 0) * 2 * lastExtent(getX());
}

// The logits were there before.
uint64_t LinearCrossEntropyGradOp::getModelFlops() {
  return rows(getX()) * extent(getWeight(), 0) * 4 * lastExtent(getX());
}

uint64_t LinearCrossEntropyLossGradOp::getModelFlops() {
  return rows(getX()) * extent(getWeight(), 0) * 6 * lastExtent(getX());
}

//===----------------------------------------------------------------------===//
// Latent variable
//===----------------------------------------------------------------------===//

uint64_t BinaryMapperOp::getFlops() { return 0; }

// What is added to is touched where there are ids, which may all be others; without it all rows are written.
uint64_t EmbeddingGradOp::getBytes() {
  if (!getAcc())
    return bytesOfOperandsAndResults(*this);
  uint64_t rows = std::max<uint64_t>(extent(getDtable(), 0), 1), row = bytesOf(getDtable().getType()) / rows;
  return bytesOf(getIds().getType()) + bytesOf(getDy().getType()) +
         2 * row * std::min(elements(getIds()), rows);
}

// For each position and code: g_d 2 D, G_d 1 (built by doubling), g_d G_d 1, the sums over d 2 H.
uint64_t BinaryMapperGradOp::getFlops() {
  return rows(getLogits()) * extent(getTable(), 0) *
         (2 * extent(getTable(), 1) + 2 + 2 * lastExtent(getLogits()));
}

uint64_t BinaryMapperGradOp::getModelFlops() {
  return rows(getLogits()) * extent(getTable(), 0) * 2 * (extent(getTable(), 1) + lastExtent(getLogits()));
}

//===----------------------------------------------------------------------===//
// Optimizer, on whole units
//===----------------------------------------------------------------------===//

uint64_t SumSquaresOp::getFlops() {
  return (getFactor() ? 3 : 2) * unitElements(*this, unitOf(getGradient()));
}

uint64_t SumSquaresOp::getBytes() {
  return gradientBytes(getGradient()) * unitElements(*this, unitOf(getGradient())) +
         2 * 8 * uint64_t(kAccumulatorWords);
}

// As many an element as the body has for each of a block.
uint64_t UpdateOp::getFlops() {
  uint64_t ofBlock = 0;
  if (func::FuncOp body = bodyOf(*this))
    for (auto op : body.getOps<CostOpInterface>())
      ofBlock += op.getFlops();
  return ofBlock / kBlockElements * unitElements(*this, getUnitAttr());
}

// Reads gradient, weights and states; writes the last two, or a direction for the weights.
uint64_t UpdateOp::getBytes() {
  uint64_t ofElement = gradientBytes(getGradient()) + 2 * 4 * getStates().size();
  ofElement += getDirection() ? gradientBytes(getDirection()) : 2 * masterBytes(*this, getUnitAttr());
  return ofElement * unitElements(*this, getUnitAttr());
}

uint64_t LossCountOp::getFlops() { return 1; }

} // namespace mlir::ft
