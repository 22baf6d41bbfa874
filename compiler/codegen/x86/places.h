// Reading and writing up to 16 elements at an address. Fewer than 16 are moved by halves, and those
// that are apart one by one, so that nothing beside them is touched and no mask is needed.
#pragma once

#include "compiler/codegen/scalars.h"

namespace ft::compiler {

inline constexpr int64_t kVector = 16;

/// `count` elements (1 ... 16), `stride` elements apart, in the first lanes; others are whatever zero bits
/// are.
Lanes loadVector(LaneBuilder &b, mlir::Value address, DType element, int64_t count, int64_t stride = 1);
void storeVector(Lanes value, mlir::Value address, DType element, int64_t count, int64_t stride = 1);

} // namespace ft::compiler
