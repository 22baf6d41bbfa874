#include "compiler/codegen/ptx/row_threads.h"

#include "compiler/codegen/lane_vectors.h"
#include "compiler/codegen/ptx/threads.h"
#include "compiler/codegen/reduction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

#include <numeric>
#include <utility>

namespace ft::compiler {
namespace {

using namespace mlir;
using LanesList = KernelBuilder::LanesList;

} // namespace

RowThreads::RowThreads(KernelBuilder &b, const BodyFacts &facts, const ThreadPlan &plan)
    : b(b), facts(facts), body(facts.body), plan(plan), values(b, facts, kPack),
      partials(partialOutputsOf(body)), registers(RowRegisters::of(facts, plan)) {
  if (!plan.isUnrolled())
    early = earlyResultsOf(facts);
}

void RowThreads::enter(ArrayRef<Value> operands, Value threadOfRow, Value segmentOfRow) {
  pointers.assign(operands.begin(), operands.end());
  values.readStates(pointers);
  thread = threadOfRow;
  segment = segmentOfRow;
  packs.clear();
  if (!plan.isUnrolled())
    return;
  for (int64_t k = 0; k < plan.threadPacks(); ++k) {
    Value pack = b.plus(thread, k * plan.rowThreads);
    if (plan.segments > 1 || plan.flat)
      pack = b.plus(b.times(segment, plan.rowThreads), pack);
    packs.push_back({placeOf(pack, k * plan.rowThreads), packs.size()});
  }
  row = b.number(0); // any row has them
  constantBits = readPacks(registers.constant, {});
}

// `first`: the pack of thread 0 of the row.
PackPlace RowThreads::placeOf(Value pack, int64_t first) const {
  int64_t end = first + plan.segments * plan.rowThreads;
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

// Flat spaces are one row here, of all columns.
Value RowThreads::rowOfSpace() { return plan.flat ? b.number(0) : row; }

Value RowThreads::rowAddress(unsigned operand, const ClusterBody::Place &place, DType element) {
  return elementAddress(b, pointers[operand], rowBegin(b, place, rowOfSpace(), body.rows), element);
}

PackAddress RowThreads::addressOf(unsigned operand, const ClusterBody::Place &place, DType element) {
  int64_t aligned = place.begin;
  for (const ClusterBody::Place::Step &step : place.steps)
    aligned = std::gcd(aligned, step.stride);
  return {rowAddress(operand, place, element), element, aligned, place.column_stride};
}

PackAddress RowThreads::addressOfRead(uint32_t read) {
  return addressOf(body.reads[read].input, body.reads[read].place, body.dtype(read));
}

PackAddress RowThreads::addressOfOutput(size_t number) {
  const ClusterBody::Output &output = body.outputs[number];
  return addressOf(operandOfResult(body, output.result), output.place, body.results[output.result].dtype);
}

// One row for each block of rows, whole packs each.
PackAddress RowThreads::partialAddress(const PartialOutput &partial, Value partialRow) {
  DType element = accumulatorOf(partial.value);
  return {elementAddress(b, pointers[partial.operand], partialRow, element), element, 0};
}

Lanes RowThreads::nothingOf(const PartialOutput &partial) const {
  return identityOf(partial.output->reduction,
                    zeros(b, kPack, registerType(b, accumulatorOf(partial.value))));
}

RowThreads::LanesList RowThreads::readRow(Value index, Value isActive) {
  row = index;
  return readPacks(registers.held, isActive);
}

RowThreads::LanesList RowThreads::readPacks(ArrayRef<uint32_t> reads, Value isActive) {
  LanesList bits;
  if (reads.empty())
    return bits;
  auto addresses = llvm::map_to_vector(reads, [&](uint32_t read) { return addressOfRead(read); });
  for (const Pack &pack : packs)
    llvm::append_range(bits, loadPacks(b, addresses, where(b, isActive, pack.place), plan.tailLanes()));
  return bits;
}

// Null where it is not kept.
Lanes *RowThreads::bitsOfRead(uint32_t read, const Pack &pack) {
  for (auto [reads, bits] : {std::pair(&registers.held, &heldBits), {&registers.constant, &constantBits}})
    if (auto found = llvm::find(*reads, read); found != reads->end())
      return &(*bits)[pack.index * reads->size() + (found - reads->begin())];
  return nullptr;
}

void RowThreads::readScalars() {
  values.clear();
  for (auto [i, read] : llvm::enumerate(body.reads))
    if (!facts.columns[i])
      values.set(i, loadScalar(b, rowAddress(read.input, read.place, body.dtype(i)), body.dtype(i)));
}

Lanes RowThreads::valueAt(uint32_t value, const Pack &pack, BodyValues::LanesOf &known) {
  auto load = [&](uint32_t read) {
    DType element = body.dtype(read);
    if (Lanes *bits = bitsOfRead(read, pack)) {
      // Anew for each pass, or else both halves of every word stay unpacked, in registers of their own.
      if (facts.lastLevel > 0 && SizeOf(element) < 4)
        *bits = held(*bits);
      return fromMemory(element, *bits);
    }
    return fromMemory(element,
                      loadPacks(b, addressOfRead(read), where(b, active, pack.place), plan.tailLanes())[0]);
  };
  return values.vectorOf(value, known,
                         {load, [&] { return rowOfSpace(); }, [&] { return pack.place.column; }});
}

// A thread reads what it has written itself.
BodyValues::LanesOf RowThreads::writtenBefore(int pass, const Pack &pack) {
  BodyValues::LanesOf known;
  for (const EarlyResult &result : early)
    if (result.passes[pass]) {
      PackAddress address = addressOfOutput(result.output);
      known[result.value] = fromMemory(
          address.element, loadPacks(b, address, where(b, active, pack.place), plan.tailLanes())[0]);
    }
  return known;
}

void RowThreads::storeEarly(const Pack &pack, const BodyValues::LanesOf &known) {
  for (const EarlyResult &result : early) {
    PackAddress address = addressOfOutput(result.output);
    storePacks(b, toMemory(address.element, known.lookup(result.value)), address,
               where(b, active, pack.place), plan.tailLanes());
  }
}

bool RowThreads::isEarly(size_t output) const {
  return llvm::any_of(early, [&](const EarlyResult &result) { return result.output == output; });
}

void RowThreads::emitReductions(int level, int64_t slot) {
  llvm::SmallVector<uint32_t> reductions = facts.reductions(level);
  LanesList sums;
  for (uint32_t value : reductions)
    sums.push_back(
        identityOf(facts.op(value).reduction, zeros(b, kPack, registerType(b, body.dtype(value)))));
  sums = eachPack(sums, [&](const Pack &pack, ArrayRef<Lanes> carried) {
    LanesList next(carried);
    BodyValues::LanesOf known = writtenBefore(level, pack);
    for (auto [value, sum] : llvm::zip(reductions, next)) {
      const ClusterBody::Op &op = facts.op(value);
      Lanes with = combined(op.reduction, sum, valueAt(op.operands[0], pack, known));
      sum = ofRow(pack.place, plan.tailLanes(), with, sum);
    }
    if (level == 0)
      storeEarly(pack, known);
    return next;
  });
  llvm::SmallVector<Partial> ofThread;
  for (auto [value, sum] : llvm::zip(reductions, sums)) {
    ReductionKind kind = facts.op(value).reduction;
    ofThread.push_back({kind, joined(kind, sum)});
  }
  for (auto [value, sum] : llvm::zip(reductions, joinedInRow(b, ofThread, plan, thread, slot)))
    values.set(value, roundTo(body.dtype(value), sum));
}

void RowThreads::storeRows(const Pack &pack, const BodyValues::LanesOf &known) {
  LanesList bits;
  llvm::SmallVector<PackAddress> addresses;
  for (auto [number, output] : llvm::enumerate(body.outputs)) {
    if (output.over_rows || output.place.column_stride == 0 || isEarly(number))
      continue;
    addresses.push_back(addressOfOutput(number));
    bits.push_back(toMemory(addresses.back().element, known.lookup(output.value)));
  }
  if (!bits.empty())
    storePacks(b, bits, addresses, where(b, active, pack.place), plan.tailLanes());
}

// All values of a pack are known before one is written, since a result may take the place of an input.
LanesList RowThreads::emitResults(ArrayRef<Lanes> sums, Value partialRow) {
  LanesList next(sums);
  eachPack({}, [&](const Pack &pack, ArrayRef<Lanes>) {
    BodyValues::LanesOf known = writtenBefore(facts.lastLevel, pack);
    for (auto [number, output] : llvm::enumerate(body.outputs))
      if (output.place.column_stride != 0 && !isEarly(number))
        valueAt(output.value, pack, known);
    for (auto [i, partial] : llvm::enumerate(partials)) {
      Lanes value = known.lookup(partial.output->value);
      PackAddress address;
      Lanes sum;
      if (plan.isUnrolled()) {
        sum = next[i * packs.size() + pack.index];
      } else {
        address = partialAddress(partial, partialRow);
        sum = loadPacks(b, address, PackPlace{.column = pack.place.column}, 0)[0];
      }
      Lanes with = combined(partial.output->reduction, sum, value);
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
    lead = arith::AndIOp::create(b, b.getLoc(), lead, b.isLess(segment, b.number(1)));
  if (active)
    lead = arith::AndIOp::create(b, b.getLoc(), lead, active);
  for (const ClusterBody::Output &output : body.outputs) {
    if (output.place.column_stride != 0)
      continue;
    DType element = body.results[output.result].dtype;
    Value address = rowAddress(operandOfResult(body, output.result), output.place, element);
    b.when(lead, [&] { storeScalar(values.get(output.value), address, element); });
  }
}

LanesList RowThreads::emitRow(Value index, Value isActive, ArrayRef<Lanes> read, ArrayRef<Lanes> sums,
                              Value partialRow) {
  row = index;
  active = isActive;
  heldBits.assign(read.begin(), read.end());
  readScalars();
  auto thisRow = [&] { return rowOfSpace(); };
  values.evaluateScalars(0, thisRow);
  int64_t slot = 0;
  for (int level = 0; level < facts.lastLevel; ++level) {
    emitReductions(level, slot);
    values.evaluateScalars(level + 1, thisRow);
    slot += static_cast<int64_t>(facts.reductions(level).size());
  }
  LanesList next = emitResults(sums, partialRow);
  storeScalars();
  return next;
}

LanesList RowThreads::noSums() const {
  LanesList sums;
  for (const PartialOutput &partial : partials)
    sums.append(packs.size(), nothingOf(partial));
  return sums;
}

void RowThreads::clearSums(Value partialRow) {
  eachPack({}, [&](const Pack &pack, ArrayRef<Lanes>) {
    for (const PartialOutput &partial : partials)
      storePacks(b, nothingOf(partial), partialAddress(partial, partialRow),
                 PackPlace{.column = pack.place.column}, 0);
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
