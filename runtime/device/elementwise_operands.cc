#include "runtime/device/elementwise_operands.h"

#include <array>

#include "absl/types/span.h"
#include "fmt/format.h"
#include "runtime/base/elementwise_types.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"

namespace ft {
namespace {

// The last dimensions of `result`, or all.
bool IsSuffix(const Tensor& tensor, const Tensor& result) {
  if (tensor.rank > result.rank) return false;
  for (int i = 1; i <= tensor.rank; ++i) {
    if (tensor.dims[tensor.rank - i] != result.dims[result.rank - i]) return false;
  }
  return true;
}

absl::Status ReadParameters(const ElementwiseRow& row, const KernelAttributes& attributes, DType dtype,
                            ElementwiseOperands& operands) {
  for (int i = 0; i < row.num_parameters(); ++i) {
    FT_ASSIGN_OR_RETURN(const double number, attributes.Float(row.parameters[i]));
    FT_ASSIGN_OR_RETURN(operands.parameters[i], CheckElementwiseParameter(row, i, number, dtype));
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
  std::array<DType, kMaxElementwiseOperands> types = {};
  for (int i = 0; i < row.operands; ++i) {
    const Tensor& tensor = operands.in[i];
    FT_RETURN_IF_ERROR(CheckPresent(tensor, "an operand", tensor.dtype));
    if (!IsSuffix(tensor, result))
      return absl::InvalidArgumentError(
          "an operand must have the shape of the result, or its last dimensions");
    checked.in[i] = {tensor.data, tensor.dtype, tensor.elements()};
    types[i] = tensor.dtype;
  }
  FT_RETURN_IF_ERROR(CheckElementwiseTypes(row, absl::MakeSpan(types).first(row.operands), result.dtype));
  const DType last = types[row.operands - 1];
  checked.of_floats = IsFloat(last);
  FT_RETURN_IF_ERROR(ReadParameters(row, attributes, last, checked));
  return checked;
}

absl::StatusOr<ConvertOperands> CheckConvert(const KernelOperands& operands) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 1, 1));
  const Tensor &x = operands.in[0], &result = operands.out[0];
  FT_RETURN_IF_ERROR(CheckPresent(x, "x", x.dtype));
  FT_RETURN_IF_ERROR(CheckSize(result, "the result", x.elements(), result.dtype));
  for (const DType dtype : {x.dtype, result.dtype}) {
    if (!IsElementwiseType(dtype))
      return absl::InvalidArgumentError(fmt::format(
          "x or the result has elements of type {}, which the kernel does not take", Name(dtype)));
  }
  return ConvertOperands{x.data, result.data, x.dtype, result.dtype, x.elements()};
}

}  // namespace ft
