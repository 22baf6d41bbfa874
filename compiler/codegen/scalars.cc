#include "compiler/codegen/scalars.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace ft::compiler {

using namespace mlir;

unsigned memoryBytes(Type inMemory) { return inMemory.getIntOrFloatBitWidth() / 8; }

Value elementAddress(LaneBuilder &b, Value base, Value index, DType element) {
  return LLVM::GEPOp::create(b, b.getLoc(), base.getType(), memoryType(b, element), base,
                             ArrayRef<LLVM::GEPArg>{index});
}

Lanes loadScalar(LaneBuilder &b, Value address, DType element) {
  Type inMemory = memoryType(b, element);
  return fromMemory(element,
                    {&b, LLVM::LoadOp::create(b, b.getLoc(), inMemory, address, memoryBytes(inMemory))});
}

void storeScalar(Lanes value, Value address, DType element) {
  LaneBuilder &b = *value.builder;
  LLVM::StoreOp::create(b, b.getLoc(), toMemory(element, value).value, address,
                        memoryBytes(memoryType(b, element)));
}

} // namespace ft::compiler
