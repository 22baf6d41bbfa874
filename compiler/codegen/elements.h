// Elements in memory and in registers. In registers floats are f32, whatever their type; they are rounded
// to it all the same. In memory bf16 and f16 are 16 bits, and truth values bytes.
#pragma once

#include "compiler/codegen/lane_math.h"
#include "runtime/base/elementwise.h"

namespace ft::compiler {

/// f32, bf16, f16, i32 or i1.
bool isGeneratedElement(mlir::Type element);

/// Null for ops that are not elementwise.
const ElementwiseRow *elementwiseRowOf(mlir::Operation *op);

/// What lanes of `element` are held as: a type of the builder's context.
mlir::Type registerType(LaneBuilder &b, mlir::Type element);
mlir::Type memoryType(LaneBuilder &b, mlir::Type element);

/// The nearest value of `element`, ties to even; whatever is not a float stays.
Lanes roundTo(mlir::Type element, Lanes value);
/// What memory has of a value that is one of `element`, and back.
Lanes toMemory(mlir::Type element, Lanes value);
Lanes fromMemory(mlir::Type element, Lanes bits);

/// ft.convert, unrounded.
Lanes convertTo(mlir::Type element, Lanes value);

/// The value of a row's expression, unrounded. `parameters` are p and q.
Lanes elementwiseValue(const ElementwiseRow &row, llvm::ArrayRef<Lanes> operands,
                       llvm::ArrayRef<double> parameters);

} // namespace ft::compiler
