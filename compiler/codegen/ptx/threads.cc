#include "compiler/codegen/ptx/threads.h"

#include "compiler/codegen/reduction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace ft::compiler {
namespace {

using namespace mlir;

constexpr unsigned kSharedSpace = 3;
constexpr const char *kShared = "shared";

Value number32(KernelBuilder &b, int32_t n) {
  return arith::ConstantOp::create(b, b.getLoc(), b.getI32IntegerAttr(n));
}

Value extendedIndex(KernelBuilder &b, Value index) {
  return arith::ExtUIOp::create(b, b.getLoc(), b.getI64Type(), index);
}

// Numbers of 64 bits by halves.
Lanes shuffled(KernelBuilder &b, Lanes value, NVVM::ShflKind kind, int32_t argument, int32_t clamp) {
  if (value.type().isInteger(64)) {
    Lanes low = shuffled(b, truncated(value, 32), kind, argument, clamp);
    Lanes high = shuffled(b, truncated(shiftRight(value, 32), 32), kind, argument, clamp);
    return extended(low, 64) | shiftLeft(extended(high, 64), 32);
  }
  return {&b, NVVM::ShflOp::create(b, b.getLoc(), value.type(), number32(b, -1), value.value,
                                   number32(b, argument), number32(b, clamp), kind, UnitAttr())};
}

Value isFirst(KernelBuilder &b, Value index) {
  return arith::CmpIOp::create(b, b.getLoc(), arith::CmpIPredicate::eq, index, b.number(0));
}

Value warpSlot(KernelBuilder &b, Value warp, int64_t slot, const ThreadPlan &plan) {
  return sharedAddress(b, b.times(b.plus(warp, slot * plan.warpsOfRow()), plan.wordBytes));
}

} // namespace

Value threadIndex(KernelBuilder &b) {
  return extendedIndex(b, NVVM::ThreadIdXOp::create(b, b.getLoc(), b.getI32Type()));
}

Value blockIndex(KernelBuilder &b) {
  return extendedIndex(b, NVVM::BlockIdXOp::create(b, b.getLoc(), b.getI32Type()));
}

void barrier(KernelBuilder &b) { NVVM::BarrierOp::create(b, b.getLoc()); }

void declareShared(KernelBuilder &b, ModuleOp module, int64_t bytes) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(module.getBody());
  LLVM::GlobalOp::create(b, b.getLoc(), LLVM::LLVMArrayType::get(b.getI8Type(), bytes), /*isConstant=*/false,
                         LLVM::Linkage::Internal, kShared, Attribute(), /*alignment=*/16, kSharedSpace);
}

Value sharedAddress(KernelBuilder &b, Value bytes) {
  auto type = LLVM::LLVMPointerType::get(b.getContext(), kSharedSpace);
  Value base = LLVM::AddressOfOp::create(b, b.getLoc(), type, kShared);
  return LLVM::GEPOp::create(b, b.getLoc(), type, b.getI8Type(), base, ArrayRef<LLVM::GEPArg>{bytes});
}

Lanes held(Lanes packed) {
  LaneBuilder &b = *packed.builder;
  auto type = cast<VectorType>(packed.type());
  auto words = VectorType::get({type.getNumElements() * type.getElementTypeBitWidth() / 32}, b.getI32Type());
  Value bits = vector::BitCastOp::create(b, b.getLoc(), words, packed.value);
  for (int64_t i = 0; i < words.getNumElements(); ++i) {
    Value word = vector::ExtractOp::create(b, b.getLoc(), bits, ArrayRef<int64_t>{i});
    word = LLVM::InlineAsmOp::create(b, b.getLoc(), b.getI32Type(), word, "", "=r,0",
                                     /*has_side_effects=*/false, /*is_align_stack=*/false,
                                     LLVM::tailcallkind::TailCallKind::None, {}, {})
               .getRes();
    bits = vector::InsertOp::create(b, b.getLoc(), word, bits, ArrayRef<int64_t>{i});
  }
  return {&b, vector::BitCastOp::create(b, b.getLoc(), type, bits)};
}

Lanes joinedInWarp(KernelBuilder &b, Partial partial, int64_t count) {
  constexpr int32_t kLastLane = kWarp - 1;
  Lanes value = partial.value;
  for (int32_t distance = static_cast<int32_t>(count / 2); distance > 0; distance /= 2)
    value = combined(partial.kind, value, shuffled(b, value, NVVM::ShflKind::bfly, distance, kLastLane));
  // Sums are the same either way round; of 0 and -0 either is the larger.
  if (count == 1 || partial.kind == ReductionKind::kSum || !isFloat(value))
    return value;
  int32_t segments = static_cast<int32_t>(kWarp - count) << 8;
  return shuffled(b, value, NVVM::ShflKind::idx, 0, segments | kLastLane);
}

Lanes lanesJoinedInWarp(KernelBuilder &b, ReductionKind kind, Lanes vector) {
  Value joined = vector.value;
  for (int64_t i = 0; i < cast<VectorType>(vector.type()).getNumElements(); ++i) {
    Lanes lane = {&b, vector::ExtractOp::create(b, b.getLoc(), vector.value, ArrayRef<int64_t>{i})};
    lane = joinedInWarp(b, {kind, lane}, kWarp);
    joined = vector::InsertOp::create(b, b.getLoc(), lane.value, joined, ArrayRef<int64_t>{i});
  }
  return {&b, joined};
}

llvm::SmallVector<Lanes> joinedInRow(KernelBuilder &b, ArrayRef<Partial> partials, const ThreadPlan &plan,
                                     Value thread, int64_t slot) {
  int64_t warps = plan.warpsOfRow(), count = std::min(plan.rowThreads, kWarp);
  auto sums = llvm::map_to_vector(partials, [&](const Partial &one) { return joinedInWarp(b, one, count); });
  if (warps == 1)
    return sums;
  Value lane = b.rest(thread, kWarp);
  b.when(isFirst(b, lane), [&] {
    for (auto [i, sum] : llvm::enumerate(sums))
      LLVM::StoreOp::create(b, b.getLoc(), sum.value,
                            warpSlot(b, b.quotient(thread, kWarp), slot + static_cast<int64_t>(i), plan));
  });
  barrier(b);
  int64_t places = static_cast<int64_t>(llvm::PowerOf2Ceil(warps));
  Value place = b.rest(lane, places), isWarp = b.isLess(place, b.number(warps));
  Value read = arith::MinSIOp::create(b, b.getLoc(), place, b.number(warps - 1));
  for (auto [i, sum] : llvm::enumerate(sums)) {
    Value address = warpSlot(b, read, slot + static_cast<int64_t>(i), plan);
    Lanes other = {&b, LLVM::LoadOp::create(b, b.getLoc(), sum.type(), address)};
    if (places != warps)
      other = Select({&b, isWarp}, other, identityOf(partials[i].kind, other));
    sum = joinedInWarp(b, {partials[i].kind, other}, places);
  }
  return sums;
}

} // namespace ft::compiler
