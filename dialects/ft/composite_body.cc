#include "dialects/ft/composite_body.h"

namespace mlir::ft {

using verify::shape;
using verify::tensor;

Value CompositeBody::constant(double number) {
  auto type = RankedTensorType::get({}, builder.getF32Type());
  return FillOp::create(builder, loc, type, builder.getF64FloatAttr(number));
}

Value CompositeBody::reshape(Value x, ArrayRef<int64_t> dims) {
  return ReshapeOp::create(builder, loc, tensor(x).clone(dims), x);
}

Value CompositeBody::reduced(StringRef kind, Value x) {
  auto last = tensor(x).getRank() - 1;
  return ReduceOp::create(builder, loc, tensor(x).clone(shape(x).drop_back()), x, builder.getStringAttr(kind),
                          builder.getDenseI64ArrayAttr({last}));
}

Value CompositeBody::mean(Value x) {
  return map<ScaleOp>(reduced("sum", x), 1.0 / static_cast<double>(shape(x).back()));
}

Value CompositeBody::spread(Value ofRow, Value like) {
  SmallVector<int64_t> dims(shape(like));
  dims.back() = 1;
  return BroadcastOp::create(builder, loc, tensor(like), reshape(ofRow, dims));
}

Value CompositeBody::inverseRootMeanSquare(Value x, const llvm::APFloat &eps) {
  return map<RsqrtOp>(map<ShiftOp>(mean(map<SquareOp>(x)), eps.convertToDouble()));
}

Value CompositeBody::rmsNorm(Value x, Value weight, const llvm::APFloat &eps) {
  Value normal = map<MulOp>({x, spread(inverseRootMeanSquare(x, eps), x)});
  return map<MulOp>({normal, weight});
}

} // namespace mlir::ft
