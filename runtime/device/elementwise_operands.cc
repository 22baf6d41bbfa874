#include "runtime/device/elementwise_operands.h"

#include <cmath>
#include <limits>
#include <string>

#include "fmt/format.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"

namespace ft {
namespace {

using Domain = ElementwiseDomain;

bool IsTruth(DType dtype) { return dtype == DType::kU8; }

bool IsLegal(Domain domain, DType dtype) {
  switch (domain) {
    case Domain::kFloat:
      return IsFloat(dtype);
    case Domain::kInteger:
      return IsInteger(dtype);
    case Domain::kNumber:
    case Domain::kCompare:
      return IsFloat(dtype) || IsInteger(dtype);
    case Domain::kLogic:
      return IsTruth(dtype);
    case Domain::kSelect:
      return IsFloat(dtype) || IsInteger(dtype) || IsTruth(dtype);
  }
  return false;
}

absl::Status Refuse(std::string_view name, DType dtype) {
  return absl::InvalidArgumentError(
      fmt::format("{} has elements of type {}, which the kernel does not take", name, Name(dtype)));
}

// Floats may differ, since each is read in its own type.
bool SameKind(DType a, DType b) { return a == b || (IsFloat(a) && IsFloat(b)); }

absl::Status CheckTypes(const ElementwiseRow& row, const ElementwiseOperands& operands) {
  const int first = row.domain == Domain::kSelect ? 1 : 0;
  if (first == 1 && !IsTruth(operands.in[0].dtype)) return Refuse("a", operands.in[0].dtype);
  for (int i = first; i < operands.count; ++i) {
    const DType dtype = operands.in[i].dtype;
    if (!IsLegal(row.domain, dtype) || !SameKind(dtype, operands.in[first].dtype))
      return Refuse(std::string(1, static_cast<char>('a' + i)), dtype);
  }
  const bool right = row.domain == Domain::kCompare
                         ? IsTruth(operands.result_dtype)
                         : SameKind(operands.result_dtype, operands.in[first].dtype);
  return right ? absl::OkStatus() : Refuse("the result", operands.result_dtype);
}

// The last dimensions of `result`, or all.
bool IsSuffix(const Tensor& tensor, const Tensor& result) {
  if (tensor.rank > result.rank) return false;
  for (int i = 1; i <= tensor.rank; ++i) {
    if (tensor.dims[tensor.rank - i] != result.dims[result.rank - i]) return false;
  }
  return true;
}

// In f32 for floats, as PyTorch has a number beside a tensor.
absl::Status ReadParameters(const ElementwiseRow& row, const KernelAttributes& attributes,
                            ElementwiseOperands& operands) {
  const double most = operands.of_floats                    ? kMaxReal
                      : operands.in[0].dtype == DType::kI32 ? 0x1p31 - 1
                                                            : 0x1p53;
  for (int i = 0; i < row.num_parameters(); ++i) {
    double& number = operands.parameters[i];
    FT_ASSIGN_OR_RETURN(number, FloatIn(attributes, row.parameters[i],
                                        row.domain == ElementwiseDomain::kInteger ? 1 : -most, most));
    if (operands.of_floats) number = static_cast<float>(number);
    if (!operands.of_floats && number != std::floor(number))
      return absl::InvalidArgumentError(
          fmt::format("attribute '{}' must be an integer, got {}", row.parameters[i], number));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ElementwiseOperands> CheckElementwise(const ElementwiseRow& row,
                                                     const KernelOperands& operands,
                                                     const KernelAttributes& attributes) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, row.operands, 1));
  const Tensor& result = operands.out[0];
  FT_RETURN_IF_ERROR(CheckPresent(result, "the result", result.dtype));
  ElementwiseOperands checked = {.row = &row,
                                 .count = row.operands,
                                 .in = {},
                                 .result = result.data,
                                 .result_dtype = result.dtype,
                                 .elements = result.elements()};
  for (int i = 0; i < row.operands; ++i) {
    const Tensor& tensor = operands.in[i];
    FT_RETURN_IF_ERROR(CheckPresent(tensor, "an operand", tensor.dtype));
    if (!IsSuffix(tensor, result))
      return absl::InvalidArgumentError(
          "an operand must have the shape of the result, or its last dimensions");
    checked.in[i] = {tensor.data, tensor.dtype, tensor.elements()};
  }
  FT_RETURN_IF_ERROR(CheckTypes(row, checked));
  checked.of_floats = IsFloat(checked.in[row.operands - 1].dtype);
  FT_RETURN_IF_ERROR(ReadParameters(row, attributes, checked));
  return checked;
}

absl::StatusOr<ConvertOperands> CheckConvert(const KernelOperands& operands) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 1, 1));
  const Tensor &x = operands.in[0], &result = operands.out[0];
  FT_RETURN_IF_ERROR(CheckPresent(x, "x", x.dtype));
  FT_RETURN_IF_ERROR(CheckSize(result, "the result", x.elements(), result.dtype));
  for (const DType dtype : {x.dtype, result.dtype}) {
    if (!IsLegal(Domain::kSelect, dtype)) return Refuse("x or the result", dtype);
  }
  return ConvertOperands{x.data, result.data, x.dtype, result.dtype, x.elements()};
}

}  // namespace ft
