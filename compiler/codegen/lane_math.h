// Values of several elements at a time (or one), and what the table of elementwise primitives does with them,
// as ops of arith, math and vector.
//
// Functions of floats are those of runtime/backends/cpu/simd/vector_math.h, operation for operation:
// generated kernels and written ones have the same bits where both have fma. Nothing is contracted,
// reassociated or approximated by what compiles these ops; fma stands where it is meant.
#pragma once

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ft::compiler {

/// What a machine has instructions for.
struct Instructions {
  bool fma = false;          // else products and sums are rounded apart
  bool f16 = false;          // conversions to and from it, else in integers
  bool bf16 = false;         // likewise
  bool wideProducts = false; // of vectors of 32 bits to 64
};

/// Builds for one machine.
struct LaneBuilder : mlir::ImplicitLocOpBuilder {
  LaneBuilder(mlir::Location loc, mlir::MLIRContext *context, Instructions has)
      : ImplicitLocOpBuilder(loc, context), has(has) {}
  Instructions has;
};

/// A vector or a scalar of f32, f64, i32, i64, i16 or i1.
struct Lanes {
  LaneBuilder *builder = nullptr;
  mlir::Value value;

  mlir::Type type() const { return value.getType(); }
};

bool isFloat(Lanes a);
/// Of the same shape, with other elements.
mlir::Type withElement(Lanes like, mlir::Type element);
/// The number everywhere, in the type of `like`; integers exactly, up to 2^53.
Lanes constant(Lanes like, double number);
Lanes bitsConstant(Lanes like, int64_t number);

// Integers wrap around; quotients of integers are rounded down, of a positive divisor.
Lanes operator+(Lanes a, Lanes b);
Lanes operator-(Lanes a, Lanes b);
Lanes operator*(Lanes a, Lanes b);
Lanes operator/(Lanes a, Lanes b);
Lanes operator-(Lanes a);
Lanes operator&(Lanes a, Lanes b);
Lanes operator|(Lanes a, Lanes b);
Lanes operator!(Lanes a);
Lanes operator==(Lanes a, Lanes b);
Lanes operator!=(Lanes a, Lanes b);
Lanes operator<(Lanes a, Lanes b);
Lanes operator<=(Lanes a, Lanes b);
Lanes operator>(Lanes a, Lanes b);
Lanes operator>=(Lanes a, Lanes b);

// Of integers: shifts by a number, and other widths.
Lanes shiftLeft(Lanes a, int bits);
Lanes shiftRight(Lanes a, int bits); // zeros from above
Lanes shiftRightSigned(Lanes a, int bits);
Lanes truncated(Lanes a, unsigned width);
Lanes extended(Lanes a, unsigned width); // with zeros
// The bits of floats as integers of their width, and back.
Lanes bitsOf(Lanes a);
Lanes floatsOf(Lanes a);
Lanes toInteger(Lanes a, unsigned width); // towards zero; within the type
Lanes toF32(Lanes a);                     // of integers or f64

// Under the table's names.
// NOLINTBEGIN(readability-identifier-naming)
Lanes Select(Lanes condition, Lanes a, Lanes b);
Lanes IsNan(Lanes a);
Lanes Abs(Lanes a);
Lanes Sign(Lanes a);
Lanes Floor(Lanes a);
Lanes Sqrt(Lanes a);
Lanes Exp(Lanes a);
Lanes Log(Lanes a);
Lanes Pow(Lanes a, double exponent);
Lanes Sin(Lanes a);
Lanes Cos(Lanes a);
Lanes Tanh(Lanes a);
Lanes Sigmoid(Lanes a);
Lanes Erf(Lanes a);
Lanes NormalCdf(Lanes a);
// NOLINTEND(readability-identifier-naming)

} // namespace ft::compiler
