#include "compiler/codegen/lane_vectors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace ft::compiler {
namespace {

using namespace mlir;

int64_t widthOf(Lanes vector) { return cast<VectorType>(vector.type()).getNumElements(); }

Lanes half(Lanes vector, int64_t which) {
  LaneBuilder &b = *vector.builder;
  int64_t count = widthOf(vector) / 2;
  if (count == 1)
    return {&b, vector::ExtractOp::create(b, b.getLoc(), vector.value, ArrayRef<int64_t>{which})};
  return {&b, lanesFrom(b, vector.value, which * count, count)};
}

} // namespace

Lanes splat(Lanes scalar, int64_t width) {
  LaneBuilder &b = *scalar.builder;
  return {&b,
          vector::BroadcastOp::create(b, b.getLoc(), VectorType::get({width}, scalar.type()), scalar.value)};
}

Lanes zeros(LaneBuilder &b, int64_t width, Type element) {
  Type type = width == 0 ? element : VectorType::get({width}, element);
  return {&b, arith::ConstantOp::create(b, b.getLoc(), b.getZeroAttr(type))};
}

Lanes lowerHalf(Lanes vector) { return half(vector, 0); }
Lanes upperHalf(Lanes vector) { return half(vector, 1); }

Value lanesFrom(LaneBuilder &b, Value vector, int64_t begin, int64_t count) {
  return vector::ExtractStridedSliceOp::create(b, b.getLoc(), vector, ArrayRef<int64_t>{begin},
                                               ArrayRef<int64_t>{count}, ArrayRef<int64_t>{1});
}

Value withLanes(LaneBuilder &b, Value vector, Value part, int64_t begin) {
  return vector::InsertStridedSliceOp::create(b, b.getLoc(), part, vector, ArrayRef<int64_t>{begin},
                                              ArrayRef<int64_t>{1});
}

Value insertLane(LaneBuilder &b, Value vector, Value lane, int64_t at) {
  return vector::InsertOp::create(b, b.getLoc(), lane, vector, ArrayRef<int64_t>{at});
}

Lanes firstLanes(int64_t count, Lanes a, Lanes b) {
  int64_t width = widthOf(a);
  if (count == width)
    return a;
  llvm::SmallVector<bool> mask(width, false);
  std::fill_n(mask.begin(), count, true);
  LaneBuilder &builder = *a.builder;
  auto type = VectorType::get({width}, builder.getI1Type());
  Value first = arith::ConstantOp::create(builder, builder.getLoc(), DenseElementsAttr::get(type, mask));
  return Select({&builder, first}, a, b);
}

} // namespace ft::compiler
