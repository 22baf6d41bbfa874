// Elements in memory and in registers. In registers floats are f32, whatever their type; they are rounded
// to it all the same. In memory bf16 and f16 are 16 bits, and truth values (kU8) bytes.
#pragma once

#include "compiler/codegen/lane_math.h"
#include "runtime/base/dtype.h"
#include "runtime/base/elementwise.h"

namespace ft::compiler {

/// f32, bf16, f16, i32, i64 or i1.
bool isGeneratedElement(mlir::Type element);

/// Of a value with such elements.
DType dtypeOf(mlir::Value value);

/// Null for ops that are not elementwise.
const ElementwiseRow *elementwiseRowOf(mlir::Operation *op);
/// Whether it takes a function that is worth many operations.
bool isElementary(Elementwise kind);

/// What lanes of such elements are held as, and what lies in memory.
mlir::Type registerType(LaneBuilder &b, DType element);
mlir::Type memoryType(LaneBuilder &b, DType element);
/// What sums of such elements are held as: f32, or integers of their size.
DType accumulatorOf(DType element);

/// The nearest value of `element`, ties to even; whatever is not a float stays.
Lanes roundTo(DType element, Lanes value);
/// What memory has of a value that is one of `element`, and back.
Lanes toMemory(DType element, Lanes value);
Lanes fromMemory(DType element, Lanes bits);

/// ft.convert, unrounded.
Lanes convertTo(DType element, Lanes value);

/// The value of a row's expression, unrounded. `parameters` are p and q.
Lanes elementwiseValue(const ElementwiseRow &row, llvm::ArrayRef<Lanes> operands,
                       llvm::ArrayRef<double> parameters);

} // namespace ft::compiler
