// Vectors of lanes in parts.
#pragma once

#include "compiler/codegen/lane_math.h"

namespace ft::compiler {

/// In all lanes of a vector.
Lanes splat(Lanes scalar, int64_t width);
/// Zeros, of this many lanes (a scalar for 0).
Lanes zeros(LaneBuilder &b, int64_t width, mlir::Type element);
/// Half as many lanes: the lower or the upper ones. One lane is a scalar.
Lanes lowerHalf(Lanes vector);
Lanes upperHalf(Lanes vector);
/// Lanes [begin, begin + count), as a vector.
mlir::Value lanesFrom(LaneBuilder &b, mlir::Value vector, int64_t begin, int64_t count);
/// `vector` with those of `part` from lane `begin` on.
mlir::Value withLanes(LaneBuilder &b, mlir::Value vector, mlir::Value part, int64_t begin);
/// a in the first `count` lanes, b in the others.
Lanes firstLanes(int64_t count, Lanes a, Lanes b);

/// A lane of a vector in the place of another.
mlir::Value insertLane(LaneBuilder &b, mlir::Value vector, mlir::Value lane, int64_t at);

} // namespace ft::compiler
