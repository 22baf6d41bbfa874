// What the composites of the dialect are made of.
#include "dialects/ft/elementwise.h"
#include "dialects/ft/verify.h"

namespace mlir::ft {
namespace {

using verify::shape;
using verify::tensor;

// The ops of a body, at one place.
class Body {
public:
  Body(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  template <typename ConcreteOp> Value map(ValueRange operands) {
    return ConcreteOp::create(builder, loc, operands);
  }

  Value reshape(Value x, ArrayRef<int64_t> dims) {
    return ReshapeOp::create(builder, loc, tensor(x).clone(dims), x);
  }

  // Over the last dimension, and there again for each element of it.
  Value ofRow(StringRef kind, Value x) {
    SmallVector<int64_t> dims(shape(x));
    auto last = static_cast<int64_t>(dims.size()) - 1;
    Value reduced = ReduceOp::create(builder, loc, tensor(x).clone(ArrayRef(dims).drop_back()), x,
                                     builder.getStringAttr(kind), builder.getDenseI64ArrayAttr({last}));
    dims.back() = 1;
    return BroadcastOp::create(builder, loc, tensor(x), reshape(reduced, dims));
  }

private:
  OpBuilder &builder;
  Location loc;
};

} // namespace

LogicalResult SoftmaxOp::verify() {
  return verify::minRank(*this, "x", getX(), 1, "of which the last is summed over");
}

// The derivative does not depend on what is taken off.
SmallVector<Value> SoftmaxOp::buildBody(OpBuilder &builder, ValueRange operands) {
  Body body(builder, getLoc());
  Value x = operands[0], largest = body.map<StopGradientOp>(body.ofRow("max", x));
  Value e = body.map<ExpOp>(body.map<SubOp>({x, largest}));
  return {body.map<DivOp>({e, body.ofRow("sum", e)})};
}

LogicalResult QkNormOp::verify() {
  if (failed(verify::minRank(*this, "x", getX(), 1, "the last of which is heads times head size")) ||
      failed(verify::rank(*this, "weight", getWeight(), 1, "[head size]")) ||
      failed(verify::sameElementType(*this, "weight", getWeight(), "x", getX())))
    return failure();
  int64_t width = shape(getX()).back(), size = shape(getWeight())[0], heads = getHeads();
  if (heads < 1 || width % heads != 0 || width / heads != size)
    return emitOpError() << "x has " << width << " columns; expected heads, " << heads
                         << ", times the elements of weight, " << size;
  if (!(getEps().convertToDouble() >= 0))
    return emitOpError() << "eps is " << getEps().convertToDouble() << "; expected 0 or more";
  return success();
}

SmallVector<Value> QkNormOp::buildBody(OpBuilder &builder, ValueRange operands) {
  Body body(builder, getLoc());
  ArrayRef<int64_t> dims = shape(operands[0]);
  SmallVector<int64_t> byHead(dims.drop_back());
  byHead.append({int64_t(getHeads()), shape(operands[1])[0]});
  Value x = body.reshape(operands[0], byHead);
  return {
      body.reshape(RmsNormOp::create(builder, getLoc(), x.getType(), x, operands[1], getEpsAttr()), dims)};
}

} // namespace mlir::ft
