#include "compiler/codegen/ptx/packs.h"

#include "compiler/codegen/lane_vectors.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace ft::compiler {
namespace {

using namespace mlir;
using LanesList = KernelBuilder::LanesList;

constexpr int64_t kAccessBytes = 16;

// One access: so many elements from lane `begin` on, as integers of this width.
struct Access {
  int64_t begin, unitBytes, units;
};

// The largest power of two that divides n, up to a pack.
int64_t alignedElements(int64_t n) { return n == 0 ? kPack : std::min(kPack, n & -n); }

// Of the first `lanes` elements of a pack.
llvm::SmallVector<Access> accessesOf(int64_t lanes, int64_t aligned, int64_t elementBytes) {
  int64_t elements = std::min(alignedElements(aligned), alignedElements(lanes));
  elements = std::min(elements, kAccessBytes / elementBytes);
  int64_t bytes = elements * elementBytes, unit = std::min<int64_t>(bytes, 4);
  llvm::SmallVector<Access> accesses;
  for (int64_t begin = 0; begin < lanes; begin += elements)
    accesses.push_back({begin, unit, bytes / unit});
  return accesses;
}

Type unitsType(KernelBuilder &b, const Access &access) {
  Type unit = b.getIntegerType(8 * access.unitBytes);
  return access.units == 1 ? unit : VectorType::get({access.units}, unit);
}

Value addressOf(KernelBuilder &b, Value base, Type inMemory, int64_t elements) {
  return LLVM::GEPOp::create(b, b.getLoc(), base.getType(), inMemory, base,
                             ArrayRef<LLVM::GEPArg>{b.number(elements)});
}

Value bitcast(KernelBuilder &b, Type type, Value value) {
  return value.getType() == type ? value : Value(vector::BitCastOp::create(b, b.getLoc(), type, value));
}

VectorType unitsOfPack(KernelBuilder &b, const Access &access, Type inMemory) {
  return VectorType::get({kPack * memoryBytes(inMemory) / access.unitBytes},
                         b.getIntegerType(8 * access.unitBytes));
}

Lanes load(KernelBuilder &b, const PackAddress &from, Value column, int64_t lanes) {
  Type inMemory = memoryType(b, from.element);
  int64_t size = memoryBytes(inMemory);
  Value base = elementAddress(b, from.row, b.times(column, from.stride), from.element), units;
  if (from.stride != 1) {
    Value bits = arith::ConstantOp::create(b, b.getLoc(), b.getZeroAttr(VectorType::get({kPack}, inMemory)));
    for (int64_t i = 0; i < lanes; ++i)
      bits = insertLane(b, bits,
                        LLVM::LoadOp::create(b, b.getLoc(), inMemory,
                                             addressOf(b, base, inMemory, i * from.stride),
                                             static_cast<unsigned>(size)),
                        i);
    return {&b, bits};
  }
  for (const Access &access : accessesOf(lanes, from.aligned, size)) {
    if (!units)
      units = arith::ConstantOp::create(b, b.getLoc(), b.getZeroAttr(unitsOfPack(b, access, inMemory)));
    Value piece =
        LLVM::LoadOp::create(b, b.getLoc(), unitsType(b, access), addressOf(b, base, inMemory, access.begin),
                             access.unitBytes * access.units);
    int64_t at = access.begin * size / access.unitBytes;
    if (access.units == 1)
      units = vector::InsertOp::create(b, b.getLoc(), piece, units, ArrayRef<int64_t>{at});
    else
      units = withLanes(b, units, piece, at);
  }
  return {&b, bitcast(b, VectorType::get({kPack}, inMemory), units)};
}

void store(KernelBuilder &b, Lanes bits, const PackAddress &to, Value column, int64_t lanes) {
  Type inMemory = memoryType(b, to.element);
  int64_t size = memoryBytes(inMemory);
  Value base = elementAddress(b, to.row, b.times(column, to.stride), to.element);
  for (int64_t i = 0; to.stride != 1 && i < lanes; ++i) {
    Value lane = vector::ExtractOp::create(b, b.getLoc(), bits.value, ArrayRef<int64_t>{i});
    LLVM::StoreOp::create(b, b.getLoc(), lane, addressOf(b, base, inMemory, i * to.stride),
                          static_cast<unsigned>(size));
  }
  if (to.stride != 1)
    return;
  for (const Access &access : accessesOf(lanes, to.aligned, size)) {
    Value units = bitcast(b, unitsOfPack(b, access, inMemory), bits.value);
    int64_t at = access.begin * size / access.unitBytes;
    Value piece = access.units == 1
                      ? Value(vector::ExtractOp::create(b, b.getLoc(), units, ArrayRef<int64_t>{at}))
                      : lanesFrom(b, units, at, access.units);
    LLVM::StoreOp::create(b, b.getLoc(), piece, addressOf(b, base, inMemory, access.begin),
                          access.unitBytes * access.units);
  }
}

} // namespace

LanesList loadPacks(KernelBuilder &b, ArrayRef<PackAddress> from, const PackPlace &place, int64_t tailLanes) {
  auto lanes = [&](int64_t count) {
    return llvm::map_to_vector<6>(from, [&](auto &one) { return load(b, one, place.column, count); });
  };
  auto all = [&] { return LanesList(lanes(kPack)); };
  auto some = [&] { return LanesList(lanes(tailLanes)); };
  auto none = [&] {
    return LanesList(
        llvm::map_range(from, [&](auto &one) { return zeros(b, kPack, memoryType(b, one.element)); }));
  };
  if (place.isTail)
    return place.tail ? b.choose(place.tail, some, none) : some();
  if (!place.whole)
    return all();
  return b.choose(place.whole, all, [&] { return place.tail ? b.choose(place.tail, some, none) : none(); });
}

void storePacks(KernelBuilder &b, ArrayRef<Lanes> bits, ArrayRef<PackAddress> to, const PackPlace &place,
                int64_t tailLanes) {
  auto write = [&](int64_t lanes) {
    for (auto [value, one] : llvm::zip(bits, to))
      store(b, value, one, place.column, lanes);
  };
  auto writeWhere = [&](Value condition, int64_t lanes) {
    if (condition)
      b.when(condition, [&] { write(lanes); });
    else
      write(lanes);
  };
  if (!place.isTail)
    writeWhere(place.whole, kPack);
  if (place.isTail || place.tail)
    writeWhere(place.tail, tailLanes);
}

PackPlace where(KernelBuilder &b, Value active, PackPlace place) {
  if (!active)
    return place;
  auto both = [&](Value condition) {
    return condition ? Value(arith::AndIOp::create(b, b.getLoc(), condition, active)) : active;
  };
  place.inside = both(place.inside);
  if (place.tail || place.isTail)
    place.tail = both(place.tail);
  if (!place.isTail)
    place.whole = both(place.whole);
  return place;
}

Lanes ofRow(const PackPlace &place, int64_t tailLanes, Lanes a, Lanes b) {
  if (place.isTail)
    return firstLanes(tailLanes, a, b);
  if (!place.whole)
    return a;
  Lanes end = place.tail ? Select({a.builder, place.tail}, firstLanes(tailLanes, a, b), b) : b;
  return Select({a.builder, place.whole}, a, end);
}

} // namespace ft::compiler
