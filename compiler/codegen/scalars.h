// Single elements in memory.
#pragma once

#include "compiler/codegen/elements.h"

namespace ft::compiler {

/// Bytes of an element in memory.
unsigned memoryBytes(mlir::Type inMemory);

/// The address of element `index` (an i64 value) behind `base`.
mlir::Value elementAddress(LaneBuilder &b, mlir::Value base, mlir::Value index, mlir::Type element);

Lanes loadScalar(LaneBuilder &b, mlir::Value address, mlir::Type element);
void storeScalar(Lanes value, mlir::Value address, mlir::Type element);

} // namespace ft::compiler
