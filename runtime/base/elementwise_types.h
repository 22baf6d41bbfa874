// The types and parameters that a row of the elementwise table takes.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/dtype.h"
#include "runtime/base/elementwise.h"

namespace ft {

// Floats, integers or truth values (kU8).
bool IsElementwiseType(DType dtype);

// InvalidArgument says which operand, or the result, is of a type that the row does not have. There are as
// many types as the row has operands.
absl::Status CheckElementwiseTypes(const ElementwiseRow& row, absl::Span<const DType> operands, DType result);

// Parameter 0 or 1 of the row for operands of this type, in f32 for floats, as PyTorch has a number beside a
// tensor. InvalidArgument: beyond the type, or a fraction for integers.
absl::StatusOr<double> CheckElementwiseParameter(const ElementwiseRow& row, int index, double number,
                                                 DType dtype);

}  // namespace ft
