#include "compiler/codegen/x86/places.h"

#include "compiler/codegen/lane_vectors.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace ft::compiler {
namespace {

using namespace mlir;

Value numberOf(LaneBuilder &b, int64_t number) {
  return arith::ConstantOp::create(b, b.getLoc(), b.getI64IntegerAttr(number));
}

Value addressBehind(LaneBuilder &b, Value address, Type inMemory, int64_t elements) {
  return LLVM::GEPOp::create(b, b.getLoc(), address.getType(), inMemory, address,
                             ArrayRef<LLVM::GEPArg>{numberOf(b, elements)});
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

Lanes loadVector(LaneBuilder &b, Value address, DType element, int64_t count, int64_t stride) {
  Type inMemory = memoryType(b, element);
  auto whole = VectorType::get({kVector}, inMemory);
  Value bits;
  if (count < kVector || stride != 1)
    bits = arith::ConstantOp::create(b, b.getLoc(), b.getZeroAttr(whole));
  if (stride != 1) {
    for (int64_t i = 0; i < count; ++i) {
      Value place = addressBehind(b, address, inMemory, i * stride);
      Value piece = LLVM::LoadOp::create(b, b.getLoc(), inMemory, place, memoryBytes(inMemory));
      bits = insertLane(b, bits, piece, i);
    }
    return fromMemory(element, {&b, bits});
  }
  for (auto [begin, size] : piecesOf(count)) {
    Value piece = LLVM::LoadOp::create(b, b.getLoc(), VectorType::get({size}, inMemory),
                                       addressBehind(b, address, inMemory, begin), memoryBytes(inMemory));
    bits = size == kVector ? piece : withLanes(b, bits, piece, begin);
  }
  return fromMemory(element, {&b, bits});
}

void storeVector(Lanes value, Value address, DType element, int64_t count, int64_t stride) {
  LaneBuilder &b = *value.builder;
  Type inMemory = memoryType(b, element);
  Value bits = toMemory(element, value).value;
  for (int64_t i = 0; stride != 1 && i < count; ++i) {
    Value lane = vector::ExtractOp::create(b, b.getLoc(), bits, ArrayRef<int64_t>{i});
    LLVM::StoreOp::create(b, b.getLoc(), lane, addressBehind(b, address, inMemory, i * stride),
                          memoryBytes(inMemory));
  }
  if (stride != 1)
    return;
  for (auto [begin, size] : piecesOf(count))
    LLVM::StoreOp::create(b, b.getLoc(), size == kVector ? bits : lanesFrom(b, bits, begin, size),
                          addressBehind(b, address, inMemory, begin), memoryBytes(inMemory));
}

} // namespace ft::compiler
