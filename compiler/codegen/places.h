// Reading and writing up to 16 elements, or one, at an address. Fewer than 16 are moved by halves, so that
// nothing beside them is touched and no mask is needed.
#pragma once

#include "compiler/codegen/elements.h"

namespace ft::compiler {

inline constexpr int64_t kVector = 16;

/// The address of element `index` (an i64 value) behind `base`.
mlir::Value elementAddress(LaneBuilder &b, mlir::Value base, mlir::Value index, mlir::Type element);

/// `count` elements (1 ... 16) in the first lanes; others are whatever zero bits are.
Lanes loadVector(LaneBuilder &b, mlir::Value address, mlir::Type element, int64_t count);
void storeVector(Lanes value, mlir::Value address, mlir::Type element, int64_t count);

Lanes loadScalar(LaneBuilder &b, mlir::Value address, mlir::Type element);
void storeScalar(Lanes value, mlir::Value address, mlir::Type element);

/// In all lanes of a vector.
Lanes splat(Lanes scalar);
/// Half as many lanes: the lower or the upper ones. One lane is a scalar.
Lanes lowerHalf(Lanes vector);
Lanes upperHalf(Lanes vector);
/// a in the first `count` lanes, b in the others.
Lanes firstLanes(int64_t count, Lanes a, Lanes b);

} // namespace ft::compiler
