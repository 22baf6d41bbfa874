#include "compiler/codegen/ptx/gpu_kernel.h"

#include "compiler/codegen/lane_vectors.h"
#include "compiler/codegen/ptx/row_threads.h"
#include "compiler/codegen/ptx/threads.h"
#include "compiler/codegen/reduction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace ft::compiler {
namespace {

using namespace mlir;
using LanesList = KernelBuilder::LanesList;

constexpr int64_t kCombineWarps = 8; // of a block, a pack of columns each

int64_t sharedBytesOf(const ThreadPlan &plan, const ClusterBody &body) {
  int64_t slots = llvm::count_if(
      body.ops, [](const ClusterBody::Op &op) { return op.kind == ClusterBody::Op::Kind::kReduce; });
  if (plan.warpsOfRow() > 1)
    return plan.flat ? 0 : slots * plan.warpsOfRow() * plan.wordBytes;
  return plan.reducesRows ? plan.threads() / 2 * plan.threadPacks() * kPack * plan.wordBytes : 0;
}

class GpuKernel {
public:
  GpuKernel(MLIRContext &context, const ClusterBody &body)
      : b(UnknownLoc::get(&context), &context, {.fma = true, .f16 = true, .bf16 = true}), body(body),
        facts(body), partials(partialOutputsOf(body)), plan(ThreadPlan::of(body)), rows(b, facts, plan) {}

  OwningOpRef<ModuleOp> build() {
    OwningOpRef<ModuleOp> module = ModuleOp::create(b.getLoc());
    if (int64_t bytes = sharedBytesOf(plan, body))
      declareShared(b, *module, bytes);
    entry(*module, "kernel", [&] { emitKernel(); });
    if (!partials.empty())
      entry(*module, "combine", [&] { emitCombine(); });
    return module;
  }

private:
  void entry(ModuleOp module, llvm::StringRef name, llvm::function_ref<void()> emit) {
    b.setInsertionPointToEnd(module.getBody());
    llvm::SmallVector<Type> types(operandsOf(body), LLVM::LLVMPointerType::get(b.getContext()));
    auto function = func::FuncOp::create(b, b.getLoc(), name, b.getFunctionType(types, {}));
    Block *block = function.addEntryBlock();
    b.setInsertionPointToStart(block);
    pointers.assign(block->args_begin(), block->args_end());
    emit();
    func::ReturnOp::create(b, b.getLoc());
  }

  void emitKernel();
  void emitRow(Value row, Value active);
  void emitBlockOfRows(Value block, Value group);
  LanesList joinGroups(LanesList sums, Value thread, Value group);
  void exchange(MutableArrayRef<Lanes> sums, ReductionKind kind, Value thread, Value group, int64_t half);
  void emitCombine();
  Lanes partialAt(const PartialOutput &partial, Value block, Value column);

  KernelBuilder b;
  const ClusterBody &body;
  BodyFacts facts;
  llvm::SmallVector<PartialOutput> partials;
  ThreadPlan plan;
  RowThreads rows;
  llvm::SmallVector<Value> pointers;
};

void GpuKernel::emitKernel() {
  Value thread = threadIndex(b), block = blockIndex(b);
  if (plan.groups == 1) {
    bool isCut = plan.segments > 1 && !plan.flat;
    rows.enter(pointers, thread, isCut ? b.rest(block, plan.segments) : block);
    if (plan.reducesRows)
      return emitBlockOfRows(isCut ? b.quotient(block, plan.segments) : block, {});
    emitRow(block, {});
    return;
  }
  Value group = b.quotient(thread, plan.rowThreads);
  rows.enter(pointers, b.rest(thread, plan.rowThreads), block);
  if (plan.reducesRows)
    return emitBlockOfRows(block, group);
  Value row = b.plus(b.times(block, plan.groups), group), active;
  if (plan.rows % plan.groups != 0) { // those beyond the end read the last row's scalars, and write nothing
    active = b.isLess(row, b.number(plan.rows));
    row = arith::MinSIOp::create(b, b.getLoc(), row, b.number(plan.rows - 1));
  }
  emitRow(row, active);
}

void GpuKernel::emitRow(Value row, Value active) {
  rows.emitRow(row, active, rows.readRow(row, active), {}, {});
}

// Groups take the rows of a block in turns: all of them as many, since they shuffle and meet. Where there is
// room, a row is read while the one before it is summed up.
void GpuKernel::emitBlockOfRows(Value block, Value group) {
  Value first = b.times(block, plan.blockRows), partialRow = b.times(block, plan.partialColumns());
  Value end = arith::MinSIOp::create(b, b.getLoc(), b.plus(first, plan.blockRows), b.number(plan.rows));
  if (!plan.isUnrolled())
    rows.clearSums(partialRow);
  bool isOneBarrier = plan.warpsOfRow() > 1 && facts.lastLevel == 1;
  int64_t turn = plan.groups * plan.rowsAtOnce;
  auto ofGroup = [&](Value at) { return group ? b.plus(at, group) : at; };
  LanesList carriedOn = rows.noSums();
  size_t count = carriedOn.size();
  if (rows.readsAhead())
    llvm::append_range(carriedOn, rows.readRow(ofGroup(first), b.isLess(ofGroup(first), end)));
  carriedOn = b.loop(first, end, turn, carriedOn, [&](Value at, ArrayRef<Lanes> carried) {
    LanesList sums(carried.take_front(count)), read(carried.drop_front(count)), ahead;
    if (rows.readsAhead()) {
      Value following = ofGroup(b.plus(at, turn));
      ahead = rows.readRow(following, b.isLess(following, end));
    }
    for (int64_t i = 0; i < plan.rowsAtOnce; ++i) {
      Value row = ofGroup(b.plus(at, i * plan.groups)), active;
      if (plan.rows % turn != 0) {
        active = b.isLess(row, b.number(plan.rows));
        row = arith::MinSIOp::create(b, b.getLoc(), row, b.number(plan.rows - 1));
      }
      if (!rows.readsAhead())
        read = rows.readRow(row, active);
      sums = rows.emitRow(row, active, read, sums, partialRow);
    }
    if (isOneBarrier) // sums of the next row go where those of this one are read
      barrier(b);
    llvm::append_range(sums, ahead);
    return sums;
  });
  LanesList sums(carriedOn.begin(), carriedOn.begin() + count);
  if (!plan.isUnrolled())
    return;
  if (!group)
    return rows.storeSums(sums, partialRow);
  sums = joinGroups(sums, threadIndex(b), group);
  b.when(b.isLess(group, b.number(1)), [&] { rows.storeSums(sums, partialRow); });
}

// Sums over rows of the groups of a block, by a tree: a group and the one at half the distance each time.
LanesList GpuKernel::joinGroups(LanesList sums, Value thread, Value group) {
  size_t count = sums.size() / partials.size();
  for (int64_t half = plan.groups / 2; half > 0; half /= 2)
    for (auto [i, partial] : llvm::enumerate(partials))
      exchange(MutableArrayRef(sums).slice(i * count, count), partial.output->reduction, thread, group, half);
  return sums;
}

// The sums of groups [half, 2 half) go to shared memory, and to those before them.
void GpuKernel::exchange(MutableArrayRef<Lanes> sums, ReductionKind kind, Value thread, Value group,
                         int64_t half) {
  // 16 bytes of one thread lie beside those of the next: no conflicts of banks.
  constexpr int64_t kPiece = 4;
  constexpr unsigned kAlignment = 16;
  int64_t pieceBytes = kPiece * plan.wordBytes;
  int64_t pieces = kPack / kPiece, threads = half * plan.rowThreads;
  auto place = [&](Value slot, int64_t piece) {
    return sharedAddress(b, b.times(b.plus(slot, piece * threads), pieceBytes));
  };
  auto isLower = b.isLess(group, b.number(half)), isInside = b.isLess(group, b.number(2 * half));
  Value isUpper = arith::SubIOp::create(b, b.getLoc(), isInside, isLower); // of i1: one but not the other
  b.when(isUpper, [&] {
    Value slot = b.plus(thread, -threads);
    for (auto [i, sum] : llvm::enumerate(sums))
      for (int64_t piece = 0; piece < pieces; ++piece)
        LLVM::StoreOp::create(b, b.getLoc(), lanesFrom(b, sum.value, piece * kPiece, kPiece),
                              place(slot, static_cast<int64_t>(i) * pieces + piece), kAlignment);
  });
  barrier(b);
  LanesList joined = b.choose(
      isLower,
      [&] {
        LanesList both;
        for (auto [i, sum] : llvm::enumerate(sums)) {
          Value other = sum.value;
          for (int64_t piece = 0; piece < pieces; ++piece) {
            auto type = VectorType::get({kPiece}, cast<VectorType>(sum.type()).getElementType());
            Value address = place(thread, static_cast<int64_t>(i) * pieces + piece);
            Value part = LLVM::LoadOp::create(b, b.getLoc(), type, address, kAlignment);
            other = withLanes(b, other, part, piece * kPiece);
          }
          both.push_back(combined(kind, sum, {&b, other}));
        }
        return both;
      },
      [&] { return LanesList(sums); });
  llvm::copy(joined, sums.begin());
  barrier(b);
}

Lanes GpuKernel::partialAt(const PartialOutput &partial, Value block, Value column) {
  DType element = accumulatorOf(partial.value);
  Value row = elementAddress(b, pointers[partial.operand], b.times(block, plan.partialColumns()), element);
  return loadPacks(b, PackAddress{row, element, 0}, PackPlace{.column = column}, 0)[0];
}

// A warp for each pack of columns: its threads take the blocks in turns, and are joined as threads of a row
// are.
void GpuKernel::emitCombine() {
  Value thread = threadIndex(b), lane = b.rest(thread, kWarp);
  Value pack = b.plus(b.times(blockIndex(b), kCombineWarps), b.quotient(thread, kWarp));
  Value lead = b.isLess(lane, b.number(1));
  PackPlace place = {.column = b.times(pack, kPack), .whole = b.isLess(pack, b.number(plan.wholePacks()))};
  if (plan.tailLanes() != 0)
    place.tail =
        arith::CmpIOp::create(b, b.getLoc(), arith::CmpIPredicate::eq, pack, b.number(plan.wholePacks()));
  b.when(b.isLess(pack, b.number(plan.packs())), [&] {
    for (const PartialOutput &partial : partials) {
      ReductionKind kind = partial.output->reduction;
      DType element = accumulatorOf(partial.value), result = partial.result;
      Lanes zero = zeros(b, kPack, registerType(b, element));
      Lanes sum = b.loop(lane, b.number(plan.rowBlocks()), kWarp, identityOf(kind, zero),
                         [&](Value block, ArrayRef<Lanes> carried) -> LanesList {
                           return {combined(kind, carried[0], partialAt(partial, block, place.column))};
                         })[0];
      sum = lanesJoinedInWarp(b, kind, sum);
      Lanes rounded = roundTo(result, sum);
      int64_t begin = partial.output->place.begin;
      auto sumIn = [&](int64_t operand) {
        return PackAddress{elementAddress(b, pointers[operand], b.number(begin), result), result, begin};
      };
      if (int64_t acc = partial.output->acc; acc >= 0) {
        Lanes before = loadPacks(b, sumIn(acc), where(b, lead, place), plan.tailLanes())[0];
        rounded = roundTo(result, combined(kind, fromMemory(result, before), rounded));
      }
      storePacks(b, toMemory(result, rounded), sumIn(operandOfResult(body, partial.output->result)),
                 where(b, lead, place), plan.tailLanes());
    }
  });
}

} // namespace

PtxInterface ptxInterfaceOf(const ClusterBody &body) {
  ThreadPlan plan = ThreadPlan::of(body);
  PtxInterface interface;
  interface.kernel = {plan.blocks(), plan.threads(), sharedBytesOf(plan, body)};
  if (!body.HasPartials())
    return interface;
  interface.combine = {static_cast<int64_t>(llvm::divideCeil(plan.packs(), kCombineWarps)),
                       kCombineWarps * kWarp, 0};
  interface.partialBytes = plan.rowBlocks() * plan.partialColumns() * plan.wordBytes;
  return interface;
}

OwningOpRef<ModuleOp> buildGpuKernel(MLIRContext &context, const ClusterBody &body) {
  return GpuKernel(context, body).build();
}

} // namespace ft::compiler
