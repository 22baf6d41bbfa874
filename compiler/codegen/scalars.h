// Single elements in memory.
#pragma once

#include "compiler/codegen/elements.h"

namespace ft::compiler {

/// Bytes of an element in memory.
unsigned memoryBytes(mlir::Type inMemory);

/// The address of element `index` (an i64 value) behind `base`.
mlir::Value elementAddress(LaneBuilder &b, mlir::Value base, mlir::Value index, DType element);

Lanes loadScalar(LaneBuilder &b, mlir::Value address, DType element);
void storeScalar(Lanes value, mlir::Value address, DType element);

} // namespace ft::compiler
