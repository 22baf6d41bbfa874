// What the composites of the dialect are made of.
#include "dialects/ft/elementwise.h"
#include "dialects/ft/verify.h"

#include <cmath>

namespace mlir::ft {
namespace {

using verify::shape;
using verify::tensor;

LogicalResult verifyColumns(Operation *op, llvm::StringRef name, Value value, Value x) {
  if (failed(verify::minRank(op, "x", x, 1, "[..., width]")) ||
      failed(verify::shapeIs(op, name, value, shape(x).take_back(1),
                             "the last dimension of x, which is " + shapeText(x.getType()))))
    return failure();
  return verify::sameElementType(op, name, value, "x", x);
}

LogicalResult verifyEps(Operation *op, const llvm::APFloat &eps) {
  double value = eps.convertToDouble();
  if (value >= 0)
    return success();
  return op->emitOpError() << "eps is " << value << "; expected 0 or more";
}

// The ops of a body, at one place.
class Body {
public:
  Body(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  template <typename ConcreteOp> Value map(ValueRange operands, ArrayRef<double> parameters = {}) {
    return ConcreteOp::create(builder, loc, operands, parameters);
  }
  Value constant(double number) {
    auto type = RankedTensorType::get({}, builder.getF32Type());
    return FillOp::create(builder, loc, type, builder.getF64FloatAttr(number));
  }

  Value reshape(Value x, ArrayRef<int64_t> dims) {
    return ReshapeOp::create(builder, loc, tensor(x).clone(dims), x);
  }

  // Over the last dimension.
  Value reduced(StringRef kind, Value x) {
    auto last = tensor(x).getRank() - 1;
    return ReduceOp::create(builder, loc, tensor(x).clone(shape(x).drop_back()), x,
                            builder.getStringAttr(kind), builder.getDenseI64ArrayAttr({last}));
  }
  Value mean(Value x) { return map<ScaleOp>(reduced("sum", x), 1.0 / static_cast<double>(shape(x).back())); }

  // What there is one of for a row, for each element of the rows of `like`.
  Value spread(Value ofRow, Value like) {
    SmallVector<int64_t> dims(shape(like));
    dims.back() = 1;
    return BroadcastOp::create(builder, loc, tensor(like), reshape(ofRow, dims));
  }
  Value ofRow(StringRef kind, Value x) { return spread(reduced(kind, x), x); }

  // 1 / sqrt(the mean of the squares of a row + eps)
  Value inverseRootMeanSquare(Value x, const llvm::APFloat &eps) {
    return map<RsqrtOp>(map<ShiftOp>(mean(map<SquareOp>(x)), eps.convertToDouble()));
  }
  Value rmsNorm(Value x, Value weight, const llvm::APFloat &eps) {
    Value normal = map<MulOp>({x, spread(inverseRootMeanSquare(x, eps), x)});
    return map<MulOp>({normal, weight});
  }

private:
  OpBuilder &builder;
  Location loc;
};

} // namespace

LogicalResult LayerNormOp::verify() {
  if (failed(verifyColumns(*this, "weight", getWeight(), getX())) ||
      failed(verifyColumns(*this, "bias", getBias(), getX())))
    return failure();
  return verifyEps(*this, getEps());
}

// What is left of a row without its mean has the sum 0: so the variance does not depend on the mean.
SmallVector<Value> LayerNormOp::buildBody(OpBuilder &builder, ValueRange operands) {
  Body body(builder, getLoc());
  Value x = operands[0], mean = body.mean(x);
  Value deviation = body.map<SubOp>({x, body.spread(body.map<StopGradientOp>(mean), x)});
  Value scale = body.inverseRootMeanSquare(deviation, getEps());
  Value normal = body.map<MulOp>({body.map<SubOp>({x, body.spread(mean, x)}), body.spread(scale, x)});
  return {body.map<AddOp>({body.map<MulOp>({normal, operands[1]}), operands[2]})};
}

LogicalResult RmsNormOp::verify() {
  if (failed(verifyColumns(*this, "weight", getWeight(), getX())))
    return failure();
  return verifyEps(*this, getEps());
}

SmallVector<Value> RmsNormOp::buildBody(OpBuilder &builder, ValueRange operands) {
  return {Body(builder, getLoc()).rmsNorm(operands[0], operands[1], getEps())};
}

LogicalResult GeluOp::verify() {
  if (getApproximate() == "tanh" || getApproximate() == "none")
    return success();
  return emitOpError() << "approximate is \"" << getApproximate() << "\"; expected \"tanh\" or \"none\"";
}

// x (1 + tanh(u)) / 2 = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3): no cancellation for x < 0.
SmallVector<Value> GeluOp::buildBody(OpBuilder &builder, ValueRange operands) {
  constexpr double kTwoSqrt2OverPi = 1.5957691216057308, kCubic = 0.044715;
  Body body(builder, getLoc());
  Value x = operands[0];
  if (getApproximate() == "none")
    return {body.map<MulOp>({x, body.map<NormalCdfOp>(x)})};
  Value bend = body.map<ShiftOp>(body.map<ScaleOp>(body.map<SquareOp>(x), kCubic), 1.0);
  Value twoU = body.map<ScaleOp>(body.map<MulOp>({x, bend}), kTwoSqrt2OverPi);
  return {body.map<MulOp>({x, body.map<SigmoidOp>(twoU)})};
}

SmallVector<Value> SwigluOp::buildBody(OpBuilder &builder, ValueRange operands) {
  Body body(builder, getLoc());
  return {body.map<MulOp>({body.map<SiluOp>(operands[0]), operands[1]})};
}

LogicalResult DropoutOp::verify() {
  if (failed(verify::dropoutRate(*this, getRate())))
    return failure();
  return verify::randomState(*this, getRng());
}

// Numbers of 24 bits and their bound are exact in f32.
SmallVector<Value> DropoutOp::buildBody(OpBuilder &builder, ValueRange operands) {
  Body body(builder, getLoc());
  Value x = operands[0];
  double rate = getRate().convertToDouble(), bound = std::ceil(rate * 0x1p24) * 0x1p-24;
  auto integers = tensor(x).clone(builder.getI32Type());
  Value bits = RandomBitsOp::create(builder, getLoc(), integers, operands[1], getStream());
  Value upper = body.map<RemainderOp>(body.map<FloorDivOp>(bits, 0x1p8), 0x1p24);
  Value u = body.map<ScaleOp>(ConvertOp::create(builder, getLoc(), tensor(x), upper).getResult(), 0x1p-24);
  Value keep = body.map<GeOp>({u, body.constant(bound)});
  return {body.map<SelectOp>({keep, body.map<ScaleOp>(x, 1 / (1 - rate)), body.constant(0)})};
}

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
  return verifyEps(*this, getEps());
}

SmallVector<Value> QkNormOp::buildBody(OpBuilder &builder, ValueRange operands) {
  Body body(builder, getLoc());
  ArrayRef<int64_t> dims = shape(operands[0]);
  SmallVector<int64_t> byHead(dims.drop_back());
  byHead.append({int64_t(getHeads()), shape(operands[1])[0]});
  Value normal = body.rmsNorm(body.reshape(operands[0], byHead), operands[1], getEps());
  return {body.reshape(normal, dims)};
}

} // namespace mlir::ft
