#include "compiler/codegen/places.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace ft::compiler {
namespace {

using namespace mlir;

unsigned alignmentOf(Type inMemory) { return inMemory.getIntOrFloatBitWidth() / 8; }

Value part(LaneBuilder &b, Value vector, int64_t begin, int64_t count) {
  return vector::ExtractStridedSliceOp::create(b, b.getLoc(), vector, ArrayRef<int64_t>{begin},
                                               ArrayRef<int64_t>{count}, ArrayRef<int64_t>{1});
}

Value addressBehind(LaneBuilder &b, Value address, Type inMemory, int64_t elements) {
  return LLVM::GEPOp::create(b, b.getLoc(), address.getType(), inMemory, address,
                             ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(elements)});
}

// Powers of two that give `count`, largest first, with where each begins.
llvm::SmallVector<std::pair<int64_t, int64_t>> piecesOf(int64_t count) {
  llvm::SmallVector<std::pair<int64_t, int64_t>> pieces;
  for (int64_t begin = 0, size = kVector; size > 0; size /= 2)
    if (count & size) {
      pieces.push_back({begin, size});
      begin += size;
    }
  return pieces;
}

} // namespace

Value elementAddress(LaneBuilder &b, Value base, Value index, Type element) {
  return LLVM::GEPOp::create(b, b.getLoc(), base.getType(), memoryType(b, element), base,
                             ArrayRef<LLVM::GEPArg>{index});
}

Lanes loadVector(LaneBuilder &b, Value address, Type element, int64_t count) {
  Type inMemory = memoryType(b, element);
  auto whole = VectorType::get({kVector}, inMemory);
  Value bits;
  if (count < kVector)
    bits = arith::ConstantOp::create(b, b.getLoc(), b.getZeroAttr(whole));
  for (auto [begin, size] : piecesOf(count)) {
    Value piece = LLVM::LoadOp::create(b, b.getLoc(), VectorType::get({size}, inMemory),
                                       addressBehind(b, address, inMemory, begin), alignmentOf(inMemory));
    bits = size == kVector ? piece
                           : vector::InsertStridedSliceOp::create(
                                 b, b.getLoc(), piece, bits, ArrayRef<int64_t>{begin}, ArrayRef<int64_t>{1});
  }
  return fromMemory(element, {&b, bits});
}

void storeVector(Lanes value, Value address, Type element, int64_t count) {
  LaneBuilder &b = *value.builder;
  Type inMemory = memoryType(b, element);
  Value bits = toMemory(element, value).value;
  for (auto [begin, size] : piecesOf(count))
    LLVM::StoreOp::create(b, b.getLoc(), size == kVector ? bits : part(b, bits, begin, size),
                          addressBehind(b, address, inMemory, begin), alignmentOf(inMemory));
}

Lanes loadScalar(LaneBuilder &b, Value address, Type element) {
  Type inMemory = memoryType(b, element);
  Value bits = LLVM::LoadOp::create(b, b.getLoc(), inMemory, address, alignmentOf(inMemory));
  return fromMemory(element, {&b, bits});
}

void storeScalar(Lanes value, Value address, Type element) {
  LaneBuilder &b = *value.builder;
  LLVM::StoreOp::create(b, b.getLoc(), toMemory(element, value).value, address,
                        alignmentOf(memoryType(b, element)));
}

Lanes splat(Lanes scalar) {
  LaneBuilder &b = *scalar.builder;
  return {&b, vector::BroadcastOp::create(b, b.getLoc(), VectorType::get({kVector}, scalar.type()),
                                          scalar.value)};
}

namespace {

Lanes half(Lanes vector, int64_t which) {
  LaneBuilder &b = *vector.builder;
  int64_t count = cast<VectorType>(vector.type()).getNumElements() / 2;
  if (count == 1)
    return {&b, vector::ExtractOp::create(b, b.getLoc(), vector.value, ArrayRef<int64_t>{which})};
  return {&b, part(b, vector.value, which * count, count)};
}

} // namespace

Lanes lowerHalf(Lanes vector) { return half(vector, 0); }
Lanes upperHalf(Lanes vector) { return half(vector, 1); }

Lanes firstLanes(int64_t count, Lanes a, Lanes b) {
  if (count == kVector)
    return a;
  llvm::SmallVector<bool> mask(kVector, false);
  std::fill_n(mask.begin(), count, true);
  LaneBuilder &builder = *a.builder;
  auto type = VectorType::get({kVector}, builder.getI1Type());
  Value first = arith::ConstantOp::create(builder, builder.getLoc(), DenseElementsAttr::get(type, mask));
  return Select({&builder, first}, a, b);
}

} // namespace ft::compiler
