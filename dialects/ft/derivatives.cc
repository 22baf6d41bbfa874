// The rule of reverse-mode differentiation of every differentiable op.
//
// What holds for all rules (see DifferentiableOpInterface in interfaces.td):
// - A rule that cannot be applied reports an error at the op and returns an empty vector.
// - Nothing is built for an operand that is not needed, unless the gradient op yields it anyway.
// - Gradient ops come in the order in which the schedule runs them. Gradients of weights come before
// gradients of
//   activations: the forward activation that a weight gradient reads can then die before the activation
//   gradient, of the same size, is allocated; the upstream gradient lives until the last of them in either
//   order.
#include "dialects/ft/dialect.h"

namespace mlir::ft {
namespace {

using Gradients = llvm::SmallVector<Value>;

Gradients failWith(InFlightDiagnostic diagnostic) {
  diagnostic.report();
  return {};
}

Gradients failAtLse(Operation *attention) {
  return failWith(attention->emitOpError(
      "has no derivative of `lse`, which exists for its own gradient: do not use it in the loss"));
}

// A matrix product without a bias, as precise as `op`.
Value product(OpBuilder &builder, MatmulOp op, Type type, Value a, Value b, Value acc, bool transposeA,
              bool transposeB) {
  auto made =
      MatmulOp::create(builder, op.getLoc(), type, a, b, /*bias=*/Value(), acc, transposeA, transposeB);
  made.setPrecise(op.getPrecise());
  return made;
}

// For c = a b (+ bias), in all forms that ft.matmul has; the letters are those of its description. Shapes are
// below each.
Value gradientOfA(OpBuilder &builder, MatmulOp op, Value dc, Value acc) {
  Type type = op.getA().getType();
  if (op.getTransposeA()) // [..., M] = b [..., N] (dc [M, N])^T
    return product(builder, op, type, op.getB(), dc, acc, false, true);
  // [..., K] = dc [..., N] times b^T: [N, K] when b is [K, N], b itself when it is stored [N, K]
  return product(builder, op, type, dc, op.getB(), acc, false, !op.getTransposeB());
}

Value gradientOfB(OpBuilder &builder, MatmulOp op, Value dc, Value acc) {
  Type type = op.getB().getType();
  if (op.getTransposeA()) // [..., N] = a [..., M] dc [M, N]
    return product(builder, op, type, op.getA(), dc, acc, false, false);
  if (op.getTransposeB()) // [N, K] = sum over rows of dc [..., N] and a [..., K]
    return product(builder, op, type, dc, op.getA(), acc, true, false);
  return product(builder, op, type, op.getA(), dc, acc, true, false); // [K, N]
}

} // namespace

//===----------------------------------------------------------------------===//
// Data movement
//===----------------------------------------------------------------------===//

Gradients CopyOp::buildGradient(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                                ValueRange accumulators, SmallVectorImpl<bool> &accumulated) {
  if (resultGrads[0].getType() == getX().getType())
    return {resultGrads[0]};
  return {CopyOp::create(builder, getLoc(), getX().getType(), resultGrads[0])};
}

Gradients EmbeddingOp::buildGradient(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                                     ValueRange accumulators, SmallVectorImpl<bool> &accumulated) {
  if (!needed[1])
    return {Value(), Value()};
  accumulated[1] = accumulators[1] != nullptr;
  return {Value(), EmbeddingGradOp::create(builder, getLoc(), getTable().getType(), getIds(), resultGrads[0],
                                           accumulators[1])};
}

Gradients SplitOp::buildGradient(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                                 ValueRange accumulators, SmallVectorImpl<bool> &accumulated) {
  SmallVector<Value> parts;
  for (auto [part, gradient] : llvm::zip_equal(getParts(), resultGrads))
    parts.push_back(gradient
                        ? gradient
                        : FillOp::create(builder, getLoc(), part.getType(), builder.getF64FloatAttr(0.0)));
  return {ConcatOp::create(builder, getLoc(), getX().getType(), parts, builder.getI64IntegerAttr(-1))};
}

Gradients ConcatOp::buildGradient(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                                  ValueRange accumulators, SmallVectorImpl<bool> &accumulated) {
  int64_t rank = cast<RankedTensorType>(getType()).getRank(), axis = getAxis();
  if (axis < 0 || axis == rank - 1) {
    auto split = SplitOp::create(builder, getLoc(), getParts().getTypes(), resultGrads[0]);
    return Gradients(split.getParts());
  }
  SmallVector<int64_t> begin(rank, 0);
  Gradients gradients;
  for (Value part : getParts()) {
    gradients.push_back(SliceOp::create(builder, getLoc(), part.getType(), resultGrads[0],
                                        builder.getDenseI64ArrayAttr(begin)));
    begin[axis] += cast<RankedTensorType>(part.getType()).getDimSize(axis);
  }
  return gradients;
}

//===----------------------------------------------------------------------===//
// Linear algebra and elementwise ops
//===----------------------------------------------------------------------===//

Gradients MatmulOp::buildGradient(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                                  ValueRange accumulators, SmallVectorImpl<bool> &accumulated) {
  if (getAcc())
    return failWith(emitOpError("with an accumulator (`into`) has no derivative: write the sum as ft.add"));
  Value dc = resultGrads[0];
  // Absent operands take no place: a, b and, where there is one, bias.
  Gradients gradients(getNumOperands());
  if (getBias() && needed[2])
    gradients[2] = getBias().getType() == dc.getType()
                       ? dc
                       : Value(ReduceOp::create(builder, getLoc(), getBias().getType(), dc));
  if (needed[1]) {
    gradients[1] = gradientOfB(builder, *this, dc, accumulators[1]);
    accumulated[1] = accumulators[1] != nullptr;
  }
  if (needed[0]) {
    gradients[0] = gradientOfA(builder, *this, dc, accumulators[0]);
    accumulated[0] = accumulators[0] != nullptr;
  }
  return gradients;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

Gradients AttentionOp::buildGradient(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                                     ValueRange accumulators, SmallVectorImpl<bool> &accumulated) {
  if (resultGrads[1])
    return failAtLse(*this);
  auto grad = AttentionGradOp::create(builder, getLoc(), getQ().getType(), getK().getType(), getV().getType(),
                                      resultGrads[0], getQ(), getK(), getV(), getOut(), getLse(),
                                      getLengths(), getSegments(), getRng(), getHeadsAttr(), getKvHeadsAttr(),
                                      getCausalAttr(), getWindowAttr(), getScaleAttr(), getSoftcapAttr(),
                                      getAlibiAttr(), getRateAttr(), getStreamAttr());
  Gradients gradients = {grad.getDq(), grad.getDk(), grad.getDv()};
  gradients.resize(getNumOperands());
  return gradients;
}

Gradients QkvAttentionOp::buildGradient(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                                        ValueRange accumulators, SmallVectorImpl<bool> &accumulated) {
  if (resultGrads[1])
    return failAtLse(*this);
  Gradients gradients(getNumOperands());
  gradients[0] = QkvAttentionGradOp::create(
      builder, getLoc(), getQkv().getType(), resultGrads[0], getQkv(), getOut(), getLse(), getLengths(),
      getSegments(), getRng(), getHeadsAttr(), getKvHeadsAttr(), getCausalAttr(), getWindowAttr(),
      getScaleAttr(), getSoftcapAttr(), getAlibiAttr(), getRateAttr(), getStreamAttr());
  return gradients;
}

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

Gradients LinearCrossEntropyOp::buildGradient(OpBuilder &builder, ValueRange resultGrads,
                                              ArrayRef<bool> needed, ValueRange accumulators,
                                              SmallVectorImpl<bool> &accumulated) {
  Value acc = needed[1] ? accumulators[1] : Value();
  auto grad = LinearCrossEntropyGradOp::create(builder, getLoc(), getX().getType(), getWeight().getType(),
                                               resultGrads[0], getX(), getWeight(), getTargets(), acc);
  accumulated[1] = acc != nullptr;
  return {grad.getDx(), grad.getDweight(), Value()};
}

//===----------------------------------------------------------------------===//
// Latent variable
//===----------------------------------------------------------------------===//

// The table's gradient is exact; the logits' is the straight-through one of the op's description.
Gradients BinaryMapperOp::buildGradient(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                                        ValueRange accumulators, SmallVectorImpl<bool> &accumulated) {
  Value dr = resultGrads[0];
  Gradients gradients(3);
  if (needed[2]) {
    gradients[2] =
        EmbeddingGradOp::create(builder, getLoc(), getTable().getType(), getIndex(), dr, accumulators[2]);
    accumulated[2] = accumulators[2] != nullptr;
  }
  if (needed[0])
    gradients[0] =
        BinaryMapperGradOp::create(builder, getLoc(), getLogits().getType(), dr, getLogits(), getTable());
  return gradients;
}

} // namespace mlir::ft
