// Operators of lanes, an op each.
#include "compiler/codegen/lane_math.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

namespace ft::compiler {
namespace {

using namespace mlir;

template <typename Op, typename... Arguments> Lanes make(LaneBuilder *b, Arguments &&...arguments) {
  return {b, Op::create(*b, b->getLoc(), std::forward<Arguments>(arguments)...).getResult()};
}

Lanes compare(Lanes a, Lanes b, arith::CmpFPredicate ofFloats, arith::CmpIPredicate ofIntegers) {
  if (isFloat(a))
    return make<arith::CmpFOp>(a.builder, ofFloats, a.value, b.value);
  return make<arith::CmpIOp>(a.builder, ofIntegers, a.value, b.value);
}

Lanes constantOf(Lanes like, TypedAttr element) {
  if (auto vector = dyn_cast<VectorType>(like.type()))
    element = DenseElementsAttr::get(vector, ArrayRef<Attribute>(element));
  return make<arith::ConstantOp>(like.builder, element);
}

unsigned width(Lanes a) { return getElementTypeOrSelf(a.type()).getIntOrFloatBitWidth(); }

} // namespace

bool isFloat(Lanes a) { return isa<FloatType>(getElementTypeOrSelf(a.type())); }

Type withElement(Lanes like, Type element) {
  auto vector = dyn_cast<VectorType>(like.type());
  return vector ? Type(vector.clone(element)) : element;
}

Lanes constant(Lanes like, double number) {
  Type element = getElementTypeOrSelf(like.type());
  if (!isFloat(like))
    return bitsConstant(like, static_cast<int64_t>(number));
  // f32 is rounded here as C++ rounds a literal.
  return constantOf(
      like, like.builder->getFloatAttr(element, element.isF32() ? static_cast<float>(number) : number));
}

Lanes bitsConstant(Lanes like, int64_t number) {
  Type element = getElementTypeOrSelf(like.type());
  APInt bits(64, static_cast<uint64_t>(number));
  return constantOf(like, like.builder->getIntegerAttr(element, bits.trunc(width(like))));
}

Lanes operator+(Lanes a, Lanes b) {
  return isFloat(a) ? make<arith::AddFOp>(a.builder, a.value, b.value)
                    : make<arith::AddIOp>(a.builder, a.value, b.value);
}
Lanes operator-(Lanes a, Lanes b) {
  return isFloat(a) ? make<arith::SubFOp>(a.builder, a.value, b.value)
                    : make<arith::SubIOp>(a.builder, a.value, b.value);
}
Lanes operator*(Lanes a, Lanes b) {
  return isFloat(a) ? make<arith::MulFOp>(a.builder, a.value, b.value)
                    : make<arith::MulIOp>(a.builder, a.value, b.value);
}
Lanes operator/(Lanes a, Lanes b) {
  if (isFloat(a))
    return make<arith::DivFOp>(a.builder, a.value, b.value);
  Lanes quotient = make<arith::DivSIOp>(a.builder, a.value, b.value);
  Lanes rest = a - quotient * b, one = constant(a, 1);
  return quotient - Select(rest < constant(a, 0), one, constant(a, 0));
}
Lanes operator-(Lanes a) { return isFloat(a) ? make<arith::NegFOp>(a.builder, a.value) : constant(a, 0) - a; }
Lanes operator&(Lanes a, Lanes b) { return make<arith::AndIOp>(a.builder, a.value, b.value); }
Lanes operator|(Lanes a, Lanes b) { return make<arith::OrIOp>(a.builder, a.value, b.value); }
Lanes operator!(Lanes a) { return make<arith::XOrIOp>(a.builder, a.value, bitsConstant(a, 1).value); }

Lanes operator==(Lanes a, Lanes b) {
  return compare(a, b, arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq);
}
Lanes operator!=(Lanes a, Lanes b) {
  return compare(a, b, arith::CmpFPredicate::UNE, arith::CmpIPredicate::ne);
}
Lanes operator<(Lanes a, Lanes b) {
  return compare(a, b, arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt);
}
Lanes operator<=(Lanes a, Lanes b) {
  return compare(a, b, arith::CmpFPredicate::OLE, arith::CmpIPredicate::sle);
}
Lanes operator>(Lanes a, Lanes b) {
  return compare(a, b, arith::CmpFPredicate::OGT, arith::CmpIPredicate::sgt);
}
Lanes operator>=(Lanes a, Lanes b) {
  return compare(a, b, arith::CmpFPredicate::OGE, arith::CmpIPredicate::sge);
}

Lanes shiftLeft(Lanes a, int bits) {
  return make<arith::ShLIOp>(a.builder, a.value, bitsConstant(a, bits).value);
}
Lanes shiftRight(Lanes a, int bits) {
  return make<arith::ShRUIOp>(a.builder, a.value, bitsConstant(a, bits).value);
}
Lanes shiftRightSigned(Lanes a, int bits) {
  return make<arith::ShRSIOp>(a.builder, a.value, bitsConstant(a, bits).value);
}
Lanes truncated(Lanes a, unsigned width) {
  return make<arith::TruncIOp>(a.builder, withElement(a, a.builder->getIntegerType(width)), a.value);
}
Lanes extended(Lanes a, unsigned width) {
  return make<arith::ExtUIOp>(a.builder, withElement(a, a.builder->getIntegerType(width)), a.value);
}
Lanes bitsOf(Lanes a) {
  return make<arith::BitcastOp>(a.builder, withElement(a, a.builder->getIntegerType(width(a))), a.value);
}
Lanes floatsOf(Lanes a) {
  Type element = width(a) == 64 ? Type(a.builder->getF64Type()) : a.builder->getF32Type();
  return make<arith::BitcastOp>(a.builder, withElement(a, element), a.value);
}
Lanes toInteger(Lanes a, unsigned width) {
  return make<arith::FPToSIOp>(a.builder, withElement(a, a.builder->getIntegerType(width)), a.value);
}
Lanes toF32(Lanes a) {
  Type type = withElement(a, a.builder->getF32Type());
  return isFloat(a) ? make<arith::TruncFOp>(a.builder, type, a.value)
                    : make<arith::SIToFPOp>(a.builder, type, a.value);
}

Lanes Select(Lanes condition, Lanes a, Lanes b) {
  return make<arith::SelectOp>(a.builder, condition.value, a.value, b.value);
}
Lanes IsNan(Lanes a) { return a != a; }
Lanes Abs(Lanes a) {
  return isFloat(a) ? make<math::AbsFOp>(a.builder, a.value) : Select(a < constant(a, 0), -a, a);
}
Lanes Sign(Lanes a) {
  Lanes zero = constant(a, 0);
  return Select(a > zero, constant(a, 1), Select(a < zero, constant(a, -1), a));
}
Lanes Floor(Lanes a) { return isFloat(a) ? make<math::FloorOp>(a.builder, a.value) : a; }
Lanes Sqrt(Lanes a) { return make<math::SqrtOp>(a.builder, a.value); }

} // namespace ft::compiler
