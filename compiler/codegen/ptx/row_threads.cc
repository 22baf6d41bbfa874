#include "compiler/codegen/ptx/row_threads.h"

#include "compiler/codegen/lane_vectors.h"
#include "compiler/codegen/ptx/threads.h"
#include "compiler/codegen/reduction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace ft::compiler {
namespace {

using namespace mlir;
using LanesList = KernelBuilder::LanesList;

constexpr int64_t kRegisters = 65536, kMostRegisters = 255; // of a multiprocessor, of a thread

} // namespace

RowThreads::RowThreads(KernelBuilder &b, func::FuncOp body, const Space &space, const ThreadPlan &plan)
    : b(b), body(body), space(space), plan(plan), values(b, body, space, kPack),
      partials(partialResultsOf(body)) {
  if (plan.isUnrolled())
    findHeld();
}

// All arguments of whole rows, if they and sums over rows leave half of the registers.
void RowThreads::findHeld() {
  int64_t registers = plan.threadPacks() * kPack * static_cast<int64_t>(partials.size());
  for (BlockArgument argument : body.getArguments()) {
    Layout layout = space.layout(argument);
    if (!layout.columns || (layout.rows == 1 && plan.rows != 1))
      continue;
    heldArguments.push_back(argument);
    registers += plan.threadPacks() * kPack * memoryBytes(memoryType(b, elementOf(argument))) / 4;
  }
  if (plan.flat)
    return;
  if (registers > std::min(kMostRegisters, kRegisters / plan.threads()) / 2)
    heldArguments.clear();
}

void RowThreads::enter(ArrayRef<Value> operands, Value threadOfRow, Value ofGrid) {
  pointers.assign(operands.begin(), operands.end());
  thread = threadOfRow;
  block = ofGrid;
  packs.clear();
  if (!plan.isUnrolled())
    return;
  for (int64_t k = 0; k < (plan.flat ? 1 : plan.threadPacks()); ++k) {
    Value pack = b.plus(thread, k * plan.rowThreads);
    if (plan.flat)
      pack = b.plus(b.times(block, plan.rowThreads), thread);
    packs.push_back({placeOf(pack, k * plan.rowThreads), packs.size()});
  }
}

// `first`: the pack of thread 0 of the row, or of the grid.
PackPlace RowThreads::placeOf(Value pack, int64_t first) const {
  int64_t end = first + (plan.flat ? plan.blocks() : 1) * plan.rowThreads;
  PackPlace place = {.column = b.times(pack, kPack)};
  if (end > plan.packs())
    place.inside = b.isLess(pack, b.number(plan.packs()));
  if (end > plan.wholePacks())
    place.whole = b.isLess(pack, b.number(plan.wholePacks()));
  if (place.whole && plan.tailLanes() != 0)
    place.tail =
        arith::CmpIOp::create(b, b.getLoc(), arith::CmpIPredicate::eq, pack, b.number(plan.wholePacks()));
  return place;
}

// Unrolled, or whole packs in a loop and what is left by the thread whose turn it is.
LanesList RowThreads::eachPack(LanesList carried, Step step) {
  if (plan.isUnrolled()) {
    for (const Pack &pack : packs)
      carried = step(pack, carried);
    return carried;
  }
  carried = b.loop(thread, b.number(plan.wholePacks()), plan.rowThreads, carried,
                   [&](Value pack, ArrayRef<Lanes> values) {
                     return step({PackPlace{.column = b.times(pack, kPack)}}, values);
                   });
  if (plan.tailLanes() == 0)
    return carried;
  Value turn = arith::CmpIOp::create(b, b.getLoc(), arith::CmpIPredicate::eq, thread,
                                     b.number(plan.wholePacks() % plan.rowThreads));
  auto last = [&] {
    return step({PackPlace{.column = b.number(plan.wholePacks() * kPack), .isTail = true}}, carried);
  };
  if (!carried.empty())
    return b.choose(turn, last, [&] { return carried; });
  b.when(turn, [&] { last(); });
  return carried;
}

Value RowThreads::rowAddress(unsigned operand, Value like) {
  Layout layout = space.layout(like);
  if (plan.rows == 1 || layout.rows == 1)
    return pointers[operand];
  Value index = layout.rows == plan.rows ? row : b.rest(row, layout.rows);
  return elementAddress(b, pointers[operand], layout.columns ? b.times(index, plan.columns) : index,
                        elementOf(like));
}

PackAddress RowThreads::addressOf(unsigned operand, Value like) {
  bool oneRow = plan.rows == 1 || space.layout(like).rows == 1;
  return {rowAddress(operand, like), elementOf(like), oneRow ? 0 : plan.columns};
}

// One row for each block of rows, whole packs each.
PackAddress RowThreads::partialAddress(const PartialResult &partial, Value partialRow) {
  Type element = registerType(b, elementOf(partial.reduction.operand));
  return {elementAddress(b, pointers[partial.partial], partialRow, element), element, 0};
}

void RowThreads::readArguments() {
  values.clear();
  heldBits.clear();
  for (BlockArgument argument : body.getArguments())
    if (!space.layout(argument).columns)
      values.set(argument, loadScalar(b, rowAddress(argument.getArgNumber(), argument), elementOf(argument)));
  if (heldArguments.empty())
    return;
  llvm::SmallVector<PackAddress> addresses;
  for (BlockArgument argument : heldArguments)
    addresses.push_back(addressOf(argument.getArgNumber(), argument));
  for (const Pack &pack : packs)
    heldBits.push_back(loadPacks(b, addresses, where(b, active, pack.place), plan.tailLanes()));
}

Lanes RowThreads::valueAt(Value value, const Pack &pack, LanesOf &known) {
  return values.vectorOf(value, known, [&](BlockArgument argument) {
    Type element = elementOf(argument);
    auto found = llvm::find(heldArguments, argument);
    if (found != heldArguments.end()) {
      Lanes &bits = heldBits[pack.index][found - heldArguments.begin()];
      // Anew for each pass, or else both halves of every word stay unpacked, in registers of their own.
      if (space.numLevels() > 1 && memoryBytes(memoryType(b, element)) < 4)
        bits = held(bits);
      return fromMemory(element, bits);
    }
    PackAddress address = addressOf(argument.getArgNumber(), argument);
    return fromMemory(element, loadPacks(b, address, where(b, active, pack.place), plan.tailLanes())[0]);
  });
}

void RowThreads::emitReductions(unsigned level, int64_t slot) {
  ArrayRef<mlir::ft::ReduceOp> reductions = space.reductions(level);
  LanesList sums;
  for (mlir::ft::ReduceOp op : reductions)
    sums.push_back(identityOf(op.getKind(), zeros(b, kPack, registerType(b, elementOf(op.getX())))));
  sums = eachPack(sums, [&](const Pack &pack, ArrayRef<Lanes> carried) {
    LanesList next(carried);
    LanesOf known;
    for (auto [op, sum] : llvm::zip(reductions, next)) {
      mlir::ft::ReduceOp reduce = op;
      Lanes with = combined(reduce.getKind(), sum, valueAt(reduce.getX(), pack, known));
      sum = ofRow(pack.place, plan.tailLanes(), with, sum);
    }
    return next;
  });
  llvm::SmallVector<Partial> ofThread;
  for (auto [op, sum] : llvm::zip(reductions, sums)) {
    mlir::ft::ReduceOp reduce = op;
    ofThread.push_back({reduce.getKind(), joined(reduce.getKind(), sum)});
  }
  for (auto [op, sum] : llvm::zip(reductions, joinedInRow(b, ofThread, plan, thread, slot))) {
    mlir::ft::ReduceOp reduce = op;
    values.set(reduce.getResult(), roundTo(elementOf(reduce), sum));
  }
}

void RowThreads::storeRows(const Pack &pack, const LanesOf &known) {
  Operation *terminator = body.front().getTerminator();
  LanesList bits;
  llvm::SmallVector<PackAddress> addresses;
  for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
    if (asColumnReduction(value) || !space.layout(value).columns)
      continue;
    bits.push_back(toMemory(elementOf(value), known.lookup(value)));
    addresses.push_back(addressOf(body.getNumArguments() + static_cast<unsigned>(i), value));
  }
  if (!bits.empty())
    storePacks(b, bits, addresses, where(b, active, pack.place), plan.tailLanes());
}

// All values of a pack are known before one is written, since a result may take the place of an argument.
LanesList RowThreads::emitResults(ArrayRef<Lanes> sums, Value partialRow) {
  LanesList next(sums);
  eachPack({}, [&](const Pack &pack, ArrayRef<Lanes>) {
    LanesOf known;
    for (Value value : body.front().getTerminator()->getOperands())
      if (!asColumnReduction(value) && space.layout(value).columns)
        valueAt(value, pack, known);
    for (auto [i, partial] : llvm::enumerate(partials)) {
      Lanes value = valueAt(partial.reduction.operand, pack, known);
      PackAddress address;
      Lanes sum;
      if (plan.isUnrolled()) {
        sum = next[i * packs.size() + pack.index];
      } else {
        address = partialAddress(partial, partialRow);
        sum = loadPacks(b, address, PackPlace{.column = pack.place.column}, 0)[0];
      }
      Lanes with = combined(partial.reduction.kind, sum, value);
      if (active)
        with = Select({&b, active}, with, sum);
      if (plan.isUnrolled())
        next[i * packs.size() + pack.index] = with;
      else
        storePacks(b, with, address, PackPlace{.column = pack.place.column}, 0);
    }
    storeRows(pack, known);
    return LanesList();
  });
  return next;
}

void RowThreads::storeScalars() {
  Value lead = b.isLess(thread, b.number(1));
  if (plan.flat)
    lead = arith::AndIOp::create(b, b.getLoc(), lead, b.isLess(block, b.number(1)));
  if (active)
    lead = arith::AndIOp::create(b, b.getLoc(), lead, active);
  for (auto [i, value] : llvm::enumerate(body.front().getTerminator()->getOperands())) {
    if (asColumnReduction(value) || space.layout(value).columns)
      continue;
    Value address = rowAddress(body.getNumArguments() + static_cast<unsigned>(i), value);
    b.when(lead, [&] { storeScalar(values.get(value), address, elementOf(value)); });
  }
}

LanesList RowThreads::emitRow(Value index, Value isActive, ArrayRef<Lanes> sums, Value partialRow) {
  row = index;
  active = isActive;
  readArguments();
  values.evaluateScalars(0);
  int64_t slot = 0;
  for (unsigned level = 0; level + 1 < space.numLevels(); ++level) {
    emitReductions(level, slot);
    values.evaluateScalars(level + 1);
    slot += static_cast<int64_t>(space.reductions(level).size());
  }
  LanesList next = emitResults(sums, partialRow);
  storeScalars();
  return next;
}

LanesList RowThreads::noSums() const {
  LanesList sums;
  for (const PartialResult &partial : partials) {
    Type element = registerType(b, elementOf(partial.reduction.operand));
    sums.append(packs.size(), identityOf(partial.reduction.kind, zeros(b, kPack, element)));
  }
  return sums;
}

void RowThreads::clearSums(Value partialRow) {
  eachPack({}, [&](const Pack &pack, ArrayRef<Lanes>) {
    for (const PartialResult &partial : partials) {
      Type element = registerType(b, elementOf(partial.reduction.operand));
      storePacks(b, identityOf(partial.reduction.kind, zeros(b, kPack, element)),
                 partialAddress(partial, partialRow), PackPlace{.column = pack.place.column}, 0);
    }
    return LanesList();
  });
}

// All lanes of a pack: what is beyond the row is read by no one.
void RowThreads::storeSums(ArrayRef<Lanes> sums, Value partialRow) {
  for (const Pack &pack : packs)
    for (auto [i, partial] : llvm::enumerate(partials))
      storePacks(b, sums[i * packs.size() + pack.index], partialAddress(partial, partialRow),
                 PackPlace{.column = pack.place.column, .whole = pack.place.inside}, 0);
}

} // namespace ft::compiler
