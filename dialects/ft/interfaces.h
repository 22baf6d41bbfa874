// Interfaces of the ft dialect's ops; their contracts are in interfaces.td.
#pragma once

#include <cstdint>

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"

#include "dialects/ft/extents.h"
#include "runtime/base/device_class.h"

namespace mlir::ft {

// Bytes of all operands and results that are ranked tensors of static shape, each counted once.
uint64_t bytesOfOperandsAndResults(Operation *op);

// Marks ops with few FLOPs for the bytes of their results. MLIR builds op classes from such traits, so they
// cannot name their heirs as friends.
template <typename ConcreteType>
// NOLINTNEXTLINE(bugprone-crtp-constructor-accessibility)
class CheapToRecompute : public OpTrait::TraitBase<ConcreteType, CheapToRecompute> {};

// Marks ops that compute part of the gradient along with their results.
template <typename ConcreteType>
// NOLINTNEXTLINE(bugprone-crtp-constructor-accessibility)
class FusedWithGradient : public OpTrait::TraitBase<ConcreteType, FusedWithGradient> {};

// Marks ops that only move elements.
template <typename ConcreteType>
// NOLINTNEXTLINE(bugprone-crtp-constructor-accessibility)
class MovesElements : public OpTrait::TraitBase<ConcreteType, MovesElements> {};

// Classes of ops for recomputation.
template <typename ConcreteType>
// NOLINTNEXTLINE(bugprone-crtp-constructor-accessibility)
class OfAttention : public OpTrait::TraitBase<ConcreteType, OfAttention> {};
template <typename ConcreteType>
// NOLINTNEXTLINE(bugprone-crtp-constructor-accessibility)
class OfMlp : public OpTrait::TraitBase<ConcreteType, OfMlp> {};
template <typename ConcreteType>
// NOLINTNEXTLINE(bugprone-crtp-constructor-accessibility)
class OfNorms : public OpTrait::TraitBase<ConcreteType, OfNorms> {};

// Names of the classes, and that of ops of a name; empty for none.
inline constexpr llvm::StringLiteral kOpClasses[] = {"attention", "mlp", "norms"};
llvm::StringRef opClassOf(OperationName name);

// Operands of an op, null for optional ones that are absent where it counts its segments.
llvm::SmallVector<Value> operandsBySegment(Operation *op);

// That what adds a flat gradient `in_place` to a sum over micro-steps finds it there: a pack of gradients
// that begin with the sum.
LogicalResult verifyInPlace(Operation *op);

// What decides the element type of a result of rank 1 or more.
enum class ElementRole {
  Activation, // the compute type
  Statistic,  // f32 whatever the precision is
  Rounded,    // any: the kernel computes in f32 and rounds once, to the type it is given
  Sum,        // that of the operands, which may be gradients of parameters
};

// Of any op: Activation where it does not implement PrecisionOpInterface.
ElementRole elementRole(Operation *op, unsigned index);

} // namespace mlir::ft

#include "dialects/ft/interfaces.h.inc"

namespace mlir::ft {

// What adds `x` to a sum over micro-steps; null where nothing does.
MicroStepSumOpInterface microStepSumOf(Value x);

// `x` with that of the other micro-steps, taken by the last one; `x` itself where there is one alone.
Value sumOverMicroSteps(Value x);

} // namespace mlir::ft
