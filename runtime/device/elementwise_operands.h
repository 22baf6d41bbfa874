// What an elementwise primitive is given, checked against its row.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/base/elementwise.h"
#include "runtime/device/kernel.h"

namespace ft {

// Operand element i of the result reads is i % period.
struct ElementwiseOperand {
  const void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t period = 1;
};

struct ElementwiseOperands {
  const ElementwiseRow* row = nullptr;
  int count = 0;
  std::array<ElementwiseOperand, kMaxElementwiseOperands> in;
  void* result = nullptr;
  DType result_dtype = DType::kF32;
  int64_t elements = 0;
  std::array<double, 2> parameters = {};
  bool of_floats = false;  // else of integers or truth values
};

// InvalidArgument: types, extents or parameters that the row does not have.
absl::StatusOr<ElementwiseOperands> CheckElementwise(const ElementwiseRow& row,
                                                     const KernelOperands& operands,
                                                     const KernelAttributes& attributes);

// x and its result in another type, floats to integers or truth values or the other way; from floats towards
// zero, with the type's ends for what is beyond them and 0 for NaN.
struct ConvertOperands {
  const void* x = nullptr;
  void* result = nullptr;
  DType from = DType::kF32, to = DType::kF32;
  int64_t elements = 0;
};
absl::StatusOr<ConvertOperands> CheckConvert(const KernelOperands& operands);

}  // namespace ft
