#include "compiler/codegen/kernel_builder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace ft::compiler {
namespace {

using namespace mlir;
using LanesList = KernelBuilder::LanesList;

llvm::SmallVector<Value> valuesOf(ArrayRef<Lanes> list) {
  return llvm::map_to_vector(list, [](Lanes lanes) { return lanes.value; });
}

LanesList lanesOf(LaneBuilder &b, ValueRange values) {
  return llvm::map_to_vector(values, [&](Value value) { return Lanes{&b, value}; });
}

} // namespace

Value KernelBuilder::number(int64_t n) {
  return arith::ConstantOp::create(*this, getLoc(), getI64IntegerAttr(n));
}
Value KernelBuilder::plus(Value a, int64_t n) { return n == 0 ? a : plus(a, number(n)); }
Value KernelBuilder::plus(Value a, Value b) { return arith::AddIOp::create(*this, getLoc(), a, b); }
Value KernelBuilder::times(Value a, int64_t n) {
  return n == 1 ? a : Value(arith::MulIOp::create(*this, getLoc(), a, number(n)));
}
Value KernelBuilder::rest(Value a, int64_t n) {
  return arith::RemUIOp::create(*this, getLoc(), a, number(n));
}
Value KernelBuilder::quotient(Value a, int64_t n) {
  return arith::DivUIOp::create(*this, getLoc(), a, number(n));
}
Value KernelBuilder::isLess(Value a, Value b) {
  return arith::CmpIOp::create(*this, getLoc(), arith::CmpIPredicate::slt, a, b);
}

LanesList KernelBuilder::loop(Value begin, Value end, int64_t by, ArrayRef<Lanes> carried, LoopStep step) {
  auto loop = scf::ForOp::create(*this, getLoc(), begin, end, number(by), valuesOf(carried));
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(loop.getBody());
  LanesList next = step(loop.getInductionVar(), lanesOf(*this, loop.getRegionIterArgs()));
  if (!next.empty())
    scf::YieldOp::create(*this, getLoc(), valuesOf(next));
  return lanesOf(*this, loop.getResults());
}

void KernelBuilder::when(Value condition, llvm::function_ref<void()> then) {
  auto branch = scf::IfOp::create(*this, getLoc(), condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(branch.thenBlock());
  then();
}

LanesList KernelBuilder::choose(Value condition, llvm::function_ref<LanesList()> then,
                                llvm::function_ref<LanesList()> otherwise) {
  auto fill = [&](llvm::function_ref<LanesList()> values) {
    return [this, values](OpBuilder &, Location) { // this builder stands in the branch's block by then
      scf::YieldOp::create(*this, getLoc(), valuesOf(values()));
    };
  };
  // Branches take their types from what they yield.
  OpBuilder::InsertionGuard guard(*this);
  auto branch = scf::IfOp::create(*this, getLoc(), condition, fill(then), fill(otherwise));
  return lanesOf(*this, branch.getResults());
}

} // namespace ft::compiler
