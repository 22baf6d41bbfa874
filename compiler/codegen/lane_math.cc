// Elementary functions of f32. Where each formula comes from, and how exact it is, stands in vector_math.h.
#include "compiler/codegen/lane_math.h"

#include <cmath>
#include <limits>

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace ft::compiler {
namespace {

using namespace mlir;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kLargest = 0x1.fffffep127;

Lanes operator+(Lanes a, double k) { return a + constant(a, k); }
Lanes operator-(Lanes a, double k) { return a - constant(a, k); }
Lanes operator-(double k, Lanes a) { return constant(a, k) - a; }
Lanes operator*(Lanes a, double k) { return a * constant(a, k); }
Lanes operator*(double k, Lanes a) { return constant(a, k) * a; }
Lanes operator/(double k, Lanes a) { return constant(a, k) / a; }
Lanes operator/(Lanes a, double k) { return a / constant(a, k); }
Lanes operator<(Lanes a, double k) { return a < constant(a, k); }
Lanes operator>(Lanes a, double k) { return a > constant(a, k); }

Lanes fma(Lanes a, Lanes b, Lanes c) {
  if (!a.builder->has.fma)
    return a * b + c;
  return {a.builder, math::FmaOp::create(*a.builder, a.builder->getLoc(), a.value, b.value, c.value)};
}
Lanes fma(Lanes a, double b, Lanes c) { return fma(a, constant(a, b), c); }
Lanes fma(double a, Lanes b, double c) { return fma(constant(b, a), b, constant(b, c)); }

// ((first x + ...) x + last), by multiply-adds.
Lanes polynomial(Lanes x, std::initializer_list<double> coefficients) {
  Lanes p = constant(x, *coefficients.begin());
  for (double coefficient : llvm::drop_begin(coefficients))
    p = fma(p, x, constant(x, coefficient));
  return p;
}

Lanes copySign(Lanes size, Lanes sign) {
  return {size.builder,
          math::CopySignOp::create(*size.builder, size.builder->getLoc(), size.value, sign.value)};
}

Lanes nearest(Lanes a) {
  return {a.builder, math::RoundEvenOp::create(*a.builder, a.builder->getLoc(), a.value)};
}

Lanes toF64(Lanes a) {
  mlir::Type type = withElement(a, a.builder->getF64Type());
  if (isFloat(a))
    return {a.builder, arith::ExtFOp::create(*a.builder, a.builder->getLoc(), type, a.value)};
  return {a.builder, arith::SIToFPOp::create(*a.builder, a.builder->getLoc(), type, a.value)};
}

Lanes signExtended(Lanes a) {
  mlir::Type type = withElement(a, a.builder->getI64Type());
  return {a.builder, arith::ExtSIOp::create(*a.builder, a.builder->getLoc(), type, a.value)};
}

// Of normal positive numbers.
Lanes logOfNormal(Lanes x) {
  constexpr int64_t kSqrtHalf = 0x3f3504f3;
  Lanes bits = bitsOf(x) - bitsConstant(bitsOf(x), kSqrtHalf);
  Lanes exponent = toF32(shiftRightSigned(bits, 23));
  Lanes f = floatsOf((bits & bitsConstant(bits, 0x007fffff)) + bitsConstant(bits, kSqrtHalf)) - 1;
  Lanes p = polynomial(f, {0.06971611471f, -0.1147973385f, 0.1168541992f, -0.1242568733f, 0.1424905765f,
                           -0.1666780232f, 0.2000071575f, -0.2499999696f, 0.3333333118f});
  Lanes square = f * f;
  Lanes low = fma(exponent, 1.428606820309417e-6f, fma(p * f, square, -0.5 * square));
  return fma(exponent, 0x1.62e4p-1, f + low);
}

Lanes sinReduced(Lanes x) {
  Lanes square = x * x;
  Lanes p = polynomial(square, {2.7557319224e-6f, -1.9841269841e-4f, 8.3333333333e-3f, -0.16666666667f});
  return fma(x * square, p, x);
}

Lanes cosReduced(Lanes x) {
  return polynomial(x * x, {2.4801587302e-5f, -1.3888888889e-3f, 4.1666666667e-2f, -0.5f, 1.0f});
}

Lanes sinOfQuarters(Lanes x, int64_t quarters) {
  Lanes turns = toF64(x) * 0.63661977236758134;
  Lanes usable = Abs(x) < 0x1p30;
  Lanes whole = nearest(Select(usable, turns, constant(turns, 0)));
  Lanes rest = (toF64(x) - whole * 0x1.921fb544p+0) - whole * 0x1.0b4611a626331p-34;
  Lanes quarter = toInteger(whole, 32);
  quarter = quarter + bitsConstant(quarter, quarters);
  Lanes r = toF32(rest), zero = bitsConstant(quarter, 0);
  Lanes value = Select((quarter & bitsConstant(quarter, 1)) != zero, cosReduced(r), sinReduced(r));
  Lanes turned = Select((quarter & bitsConstant(quarter, 2)) != zero, -value, value);
  return Select(usable, turned, constant(x, kNan));
}

// Both in f64 without fma.
Lanes logF64(Lanes x) {
  constexpr int64_t kSqrtHalf = 0x3FE6A09E667F3BCD;
  Lanes bits = bitsOf(x) - bitsConstant(bitsOf(x), kSqrtHalf);
  Lanes exponent = toF64(truncated(shiftRightSigned(bits, 52), 32));
  Lanes m = floatsOf((bits & bitsConstant(bits, 0x000FFFFFFFFFFFFF)) + bitsConstant(bits, kSqrtHalf));
  Lanes s = (m - 1) / (m + 1), square = s * s;
  Lanes p = constant(s, 1.0 / 21);
  for (int k = 19; k >= 1; k -= 2)
    p = p * square + 1.0 / k;
  return exponent * 0.69314718055994531 + (2.0 * s) * p;
}

Lanes expF64(Lanes x) {
  Lanes n = nearest(x * 1.4426950408889634);
  Lanes r = (x - n * 0x1.62e42fee00000p-1) - n * 0x1.a39ef35793c76p-33;
  Lanes p = constant(x, 1);
  for (int k = 13; k >= 1; --k)
    p = (p * r) / static_cast<double>(k) + 1;
  Lanes exponent = signExtended(toInteger(n, 32));
  return p * floatsOf(shiftLeft(exponent + bitsConstant(exponent, 1023), 52));
}

// exp(power ln |x|), with the sign and the ends of the power.
Lanes powOfReal(Lanes x, double power, bool whole) {
  bool odd = whole && std::fabs(power) < 0x1p31 && (static_cast<int64_t>(std::fabs(power)) & 1) != 0;
  Lanes base = Abs(x), one = constant(x, 1), zero = constant(x, 0), infinity = constant(x, kInfinity);
  Lanes sign = odd ? copySign(one, x) : one;
  Lanes exponent = power * logF64(toF64(base));
  Lanes high = exponent > 89, low = exponent < -104;
  Lanes within = Select(high, constant(exponent, 89), Select(low, constant(exponent, -104), exponent));
  Lanes size = Select(high, infinity, Select(low, zero, toF32(expF64(within))));
  size = Select(base == zero, power > 0 ? zero : infinity, size);
  size = Select(base > kLargest, power > 0 ? infinity : zero, size);
  Lanes undefined = whole ? IsNan(x) : IsNan(x) | (x < zero);
  return Select(undefined, constant(x, kNan), sign * size);
}

} // namespace

Lanes Exp(Lanes x) {
  constexpr float kLow = -87.33f, kHigh = 88.72f;
  Lanes shift = constant(x, 0x1.8p23); // adding it leaves the rounded integer in the low bits
  Lanes isLow = x<kLow, isHigh = x> kHigh;
  Lanes clamped = Select(isLow, constant(x, kLow), Select(isHigh, constant(x, kHigh), x));
  Lanes shifted = fma(clamped, 0x1.715476p+0, shift);
  Lanes n = shifted - shift;
  Lanes r = fma(n, -1.428606820309417e-6f, fma(n, -0x1.62e4p-1, clamped));
  Lanes p = polynomial(
      r, {0x1.a01a02p-13, 0x1.6c16c2p-10, 0x1.111112p-7, 0x1.555556p-5, 0x1.555556p-3, 0.5, 1.0, 1.0});
  // 2^n in two factors, since n = 128 has no exponent of its own.
  Lanes exponent = bitsOf(shifted) - bitsOf(shift);
  Lanes half = shiftRightSigned(exponent, 1), bias = bitsConstant(exponent, 127);
  Lanes y = (p * floatsOf(shiftLeft(half + bias, 23))) * floatsOf(shiftLeft(exponent - half + bias, 23));
  return Select(isLow, constant(x, 0), Select(isHigh, constant(x, kInfinity), y));
}

Lanes Sigmoid(Lanes x) { return 1.0 / (Exp(-x) + 1.0); }

Lanes Log(Lanes x) {
  Lanes zero = constant(x, 0), subnormal = x < 0x1p-126;
  Lanes y = logOfNormal(Select(subnormal, x * 0x1p23, x)) -
            Select(subnormal, constant(x, 15.9423847198486328f), zero); // 23 ln 2
  Lanes special = Select(x > zero, x, Select(x == zero, constant(x, -kInfinity), constant(x, kNan)));
  return Select((x > zero) & (x <= constant(x, kLargest)), y, special);
}

Lanes Pow(Lanes x, double power) {
  double size = std::fabs(power);
  bool whole = std::nearbyint(power) == power;
  if (!whole || size > 16)
    return powOfReal(x, power, whole);
  Lanes product = constant(x, 1);
  for (int i = 0; i < static_cast<int>(size); ++i)
    product = product * x;
  return power < 0 ? 1.0 / product : product;
}

Lanes Sin(Lanes x) { return sinOfQuarters(x, 0); }
Lanes Cos(Lanes x) { return sinOfQuarters(x, 1); }

Lanes Tanh(Lanes x) {
  Lanes size = Abs(x), square = x * x;
  Lanes p = polynomial(square, {-5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f,
                                -3.33332819422e-1f});
  Lanes small = fma(p * square, x, x);
  Lanes large = copySign(1.0 - 2.0 / (Exp(size + size) + 1.0), x);
  return Select(size < 0.625, small, large);
}

Lanes NormalCdf(Lanes x) {
  Lanes z = Abs(x) * 0.70710678118654752f;
  Lanes t = 1.0 / fma(0.4f, z, 1.0);
  Lanes p = polynomial(t, {-0.03415652278f, 0.2224943816f, -0.555611827f, 0.6220585055f, -0.3454069048f,
                           0.3042328417f, 0.1187818744f, 0.2172038742f, 0.2246833808f, 0.2257203975f});
  Lanes tail = ((0.5 * t) * p) * Exp((-0.5 * x) * x);
  return Select(x < 0.0, tail, 1.0 - tail);
}

Lanes Erf(Lanes x) {
  Lanes size = Abs(x);
  Lanes p = polynomial(x * x, {-9.667044e-06f, 0.00011265959f, -0.00084840803f, 0.0052210316f, -0.02686543f,
                               0.11283782f, -0.37612638f, 1.1283792f});
  Lanes large = copySign(1.0 - 2.0 * NormalCdf(-1.41421356237f * size), x);
  return Select(size < 1.0, p * x, large);
}

} // namespace ft::compiler
