#include "compiler/codegen/elements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringMap.h"

#include <cstdint>

namespace ft::compiler {
namespace {

using namespace mlir;

Lanes floatCast(Lanes a, Type element) {
  Type type = withElement(a, element);
  if (!element.isF32())
    return {a.builder, arith::TruncFOp::create(*a.builder, a.builder->getLoc(), type, a.value)};
  return {a.builder, arith::ExtFOp::create(*a.builder, a.builder->getLoc(), type, a.value)};
}

Lanes bitcast(Lanes a, Type element) {
  return {a.builder,
          arith::BitcastOp::create(*a.builder, a.builder->getLoc(), withElement(a, element), a.value)};
}

// By the processor's instruction, which rounds two at once.
Lanes castToBf16(Lanes value) {
  OpBuilder &b = *value.builder;
  return bitcast(floatCast(value, b.getBF16Type()), b.getI16Type());
}

// The upper half of its bits, to the nearest, ties to even; NaN stays NaN.
Lanes roundToBf16(Lanes value) {
  Lanes bits = bitsOf(value);
  auto number = [&](int64_t n) { return bitsConstant(bits, n); };
  Lanes rounded = bits + number(0x7FFF) + (shiftRight(bits, 16) & number(1));
  Lanes chosen = Select(IsNan(value), bits | number(0x00400000), rounded);
  return floatsOf(chosen & number(0xFFFF0000));
}

// To and from f16 without its instructions: Store and Load of runtime/backends/cpu/simd/element.h. What
// is compared is below 2^31.
Lanes f16BitsOf(Lanes value) {
  Lanes bits = bitsOf(value);
  auto number = [&](int64_t n) { return bitsConstant(bits, n); };
  Lanes magnitude = bits & number(0x7FFFFFFF);
  Lanes normal = shiftRight(
      magnitude - number(112 << 23) + number(0x0FFF) + (shiftRight(magnitude, 13) & number(1)), 13);
  Lanes subnormal = bitsOf(floatsOf(magnitude) + constant(value, 0.5)) - number(126 << 23);
  Lanes special = Select(magnitude > number(0x7F800000),
                         number(0x7E00) | (shiftRight(magnitude, 13) & number(0x03FF)), number(0x7C00));
  Lanes finite = Select(magnitude < number(0x38800000), subnormal, normal);
  Lanes unsignedBits = Select(magnitude >= number(0x47800000), special, finite);
  return truncated(unsignedBits | (shiftRight(bits, 16) & number(0x8000)), 16);
}

Lanes floatsOfF16Bits(Lanes stored) {
  Lanes bits = extended(stored, 32);
  auto number = [&](int64_t n) { return bitsConstant(bits, n); };
  Lanes magnitude = bits & number(0x7FFF), moved = shiftLeft(magnitude, 13);
  Lanes normal = moved + Select(magnitude >= number(0x7C00), number(int64_t{224} << 23), number(112 << 23));
  Lanes quiet = Select(magnitude > number(0x7C00), number(0x00400000), number(0));
  Lanes subnormal = floatsOf(moved + number(113 << 23));
  subnormal = bitsOf(subnormal - constant(subnormal, 0x1p-14));
  Lanes chosen = Select(magnitude < number(0x0400), subnormal, normal | quiet);
  return floatsOf(chosen | shiftLeft(bits & number(0x8000), 16));
}

bool isTruth(Lanes value) { return getElementTypeOrSelf(value.type()).isInteger(1); }

// Integers of another width, with their sign or without the upper bits.
Lanes resized(Lanes value, unsigned width) {
  unsigned from = getElementTypeOrSelf(value.type()).getIntOrFloatBitWidth();
  if (from == width)
    return value;
  if (from > width)
    return truncated(value, width);
  Type type = withElement(value, value.builder->getIntegerType(width));
  return {value.builder, arith::ExtSIOp::create(*value.builder, value.builder->getLoc(), type, value.value)};
}

// The 16 bits that fromMemory made a value of bf16 of; null where something else did.
Value bf16BitsBehind(Value value) {
  auto floats = value.getDefiningOp<arith::BitcastOp>();
  auto shifted = floats ? floats.getIn().getDefiningOp<arith::ShLIOp>() : nullptr;
  auto extended = shifted ? shifted.getLhs().getDefiningOp<arith::ExtUIOp>() : nullptr;
  APInt by;
  if (!extended || !getElementTypeOrSelf(extended.getIn()).isInteger(16) ||
      !matchPattern(shifted.getRhs(), m_ConstantInt(&by)) || by != 16)
    return nullptr;
  return extended.getIn();
}

} // namespace

bool isGeneratedElement(Type element) {
  return element.isF32() || element.isBF16() || element.isF16() || element.isInteger(32) ||
         element.isInteger(64) || element.isInteger(1);
}

DType dtypeOf(Value value) {
  Type element = getElementTypeOrSelf(value.getType());
  if (element.isInteger())
    return element.isInteger(1) ? DType::kU8 : element.isInteger(32) ? DType::kI32 : DType::kI64;
  return element.isF32() ? DType::kF32 : element.isBF16() ? DType::kBF16 : DType::kF16;
}

const ElementwiseRow *elementwiseRowOf(Operation *op) {
  static const llvm::StringMap<const ElementwiseRow *> rows = [] {
    llvm::StringMap<const ElementwiseRow *> result;
    for (const ElementwiseRow &row : kElementwiseRows)
      result[("ft." + llvm::StringRef(row.name)).str()] = &row;
    return result;
  }();
  return rows.lookup(op->getName().getStringRef());
}

Type registerType(LaneBuilder &b, DType element) {
  if (IsFloat(element))
    return b.getF32Type();
  return element == DType::kU8 ? b.getI1Type() : b.getIntegerType(8 * SizeOf(element));
}

Type memoryType(LaneBuilder &b, DType element) {
  return element == DType::kF32 ? Type(b.getF32Type()) : b.getIntegerType(8 * SizeOf(element));
}

DType accumulatorOf(DType element) { return IsFloat(element) ? DType::kF32 : element; }

Lanes roundTo(DType element, Lanes value) {
  LaneBuilder &b = *value.builder;
  if (element == DType::kBF16)
    return b.has.bf16 ? fromMemory(element, castToBf16(value)) : roundToBf16(value);
  if (element != DType::kF16)
    return value;
  return b.has.f16 ? floatCast(floatCast(value, b.getF16Type()), b.getF32Type())
                   : floatsOfF16Bits(f16BitsOf(value));
}

Lanes toMemory(DType element, Lanes value) {
  LaneBuilder &b = *value.builder;
  if (element == DType::kU8)
    return extended(value, 8);
  if (element == DType::kBF16) {
    if (Value bits = bf16BitsBehind(value.value))
      return {&b, bits};
    return b.has.bf16 ? castToBf16(value) : truncated(shiftRight(bitsOf(value), 16), 16);
  }
  if (element != DType::kF16)
    return value;
  return b.has.f16 ? bitcast(floatCast(value, b.getF16Type()), b.getI16Type()) : f16BitsOf(value);
}

Lanes fromMemory(DType element, Lanes bits) {
  if (element == DType::kU8)
    return bits != bitsConstant(bits, 0);
  if (element == DType::kBF16)
    return floatsOf(shiftLeft(extended(bits, 32), 16));
  if (element != DType::kF16)
    return bits;
  return bits.builder->has.f16
             ? floatCast(bitcast(bits, bits.builder->getF16Type()), bits.builder->getF32Type())
             : floatsOfF16Bits(bits);
}

// Floats to integers towards zero, with the ends of the type for what is beyond them and 0 for NaN.
Lanes convertTo(DType element, Lanes value) {
  if (IsFloat(element))
    return isFloat(value) ? value : toF32(isTruth(value) ? extended(value, 32) : value);
  if (element == DType::kU8)
    return isTruth(value) ? value : value != constant(value, 0);
  auto width = static_cast<unsigned>(8 * SizeOf(element));
  if (!isFloat(value))
    return isTruth(value) ? extended(value, width) : resized(value, width);
  double end = element == DType::kI32 ? 0x1p31 : 0x1p63;
  Lanes high = value >= constant(value, end), low = value < constant(value, -end);
  Lanes within = Select(high | low | IsNan(value), constant(value, 0), value);
  Lanes result = toInteger(within, width);
  int64_t least = element == DType::kI32 ? INT32_MIN : INT64_MIN;
  return Select(high, bitsConstant(result, -(least + 1)), Select(low, bitsConstant(result, least), result));
}

} // namespace ft::compiler
