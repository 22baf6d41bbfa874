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

Value CompositeBody::broadcast(Value x, ArrayRef<int64_t> dims) {
  return BroadcastOp::create(builder, loc, tensor(x).clone(dims), x);
}

Value CompositeBody::slice(Value x, ArrayRef<int64_t> begin, ArrayRef<int64_t> dims) {
  return SliceOp::create(builder, loc, tensor(x).clone(dims), x, builder.getDenseI64ArrayAttr(begin));
}

Value CompositeBody::concat(ValueRange parts, int64_t axis) {
  SmallVector<int64_t> dims(shape(parts[0]));
  for (Value part : parts.drop_front())
    dims[axis] += shape(part)[axis];
  return ConcatOp::create(builder, loc, tensor(parts[0]).clone(dims), parts, builder.getI64IntegerAttr(axis));
}

Value CompositeBody::reduced(StringRef kind, Value x) {
  auto last = tensor(x).getRank() - 1;
  return ReduceOp::create(builder, loc, tensor(x).clone(shape(x).drop_back()), x, builder.getStringAttr(kind),
                          builder.getDenseI64ArrayAttr({last}));
}

Value CompositeBody::mean(Value x) {
  return map<ScaleOp>(reduced("sum", x), 1.0 / static_cast<double>(shape(x).back()));
}

Value CompositeBody::sumOfAll(Value x) {
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, tensor(x).getRank()));
  return ReduceOp::create(builder, loc, tensor(x).clone(ArrayRef<int64_t>()), x, builder.getStringAttr("sum"),
                          builder.getDenseI64ArrayAttr(dims));
}

Value CompositeBody::meanOfAll(Value x) {
  return map<ScaleOp>(sumOfAll(x), 1.0 / static_cast<double>(tensor(x).getNumElements()));
}

Value CompositeBody::uniform(Value rng, int64_t stream, Value like) {
  Value bits = RandomBitsOp::create(builder, loc, tensor(like).clone(builder.getI32Type()), rng, stream);
  Value upper = map<RemainderOp>(map<FloorDivOp>(bits, 0x1p8), 0x1p24);
  return map<ScaleOp>(ConvertOp::create(builder, loc, tensor(like), upper).getResult(), 0x1p-24);
}

Value CompositeBody::columnsOf(Value like) {
  return IotaOp::create(builder, loc, RankedTensorType::get({shape(like).back()}, builder.getI32Type()));
}

Value CompositeBody::spread(Value ofRow, Value like) {
  SmallVector<int64_t> dims(shape(like));
  dims.back() = 1;
  return BroadcastOp::create(builder, loc, tensor(ofRow).clone(shape(like)), reshape(ofRow, dims));
}

Value CompositeBody::inverseRootMeanSquare(Value x, const llvm::APFloat &eps) {
  return map<RsqrtOp>(map<ShiftOp>(mean(map<SquareOp>(x)), eps.convertToDouble()));
}

Value CompositeBody::rmsNorm(Value x, Value weight, const llvm::APFloat &eps) {
  Value normal = map<MulOp>({x, spread(inverseRootMeanSquare(x, eps), x)});
  return map<MulOp>({normal, weight});
}

} // namespace mlir::ft
