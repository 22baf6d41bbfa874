#include "runtime/kernels/random/operands.h"

#include <algorithm>

#include "fmt/format.h"
#include "runtime/base/checked.h"
#include "runtime/base/philox.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"

namespace ft {
absl::StatusOr<InitialValues> ReadInitialValues(const KernelOperands& operands,
                                                const KernelAttributes& attributes) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 1, 1));
  InitialValues result;
  result.slice = operands.out[0];
  FT_RETURN_IF_ERROR(CheckSize(operands.in[0], "rng", 3, DType::kI64));
  result.rng = operands.in[0].as<int64_t>();
  FT_RETURN_IF_ERROR(CheckFloat(result.slice, "slice"));
  FT_RETURN_IF_ERROR(CheckFlat(result.slice, "slice"));
  FT_ASSIGN_OR_RETURN(const int64_t number, IntIn(attributes, "parameter", 0, kFirstOpStream - 1));
  FT_ASSIGN_OR_RETURN(const double value, FloatIn(attributes, "value"));
  const auto parameter = std::find_if(result.slice.parameters.begin(), result.slice.parameters.end(),
                                      [&](const ParameterRange& range) { return range.number == number; });
  if (parameter == result.slice.parameters.end())
    return absl::InvalidArgumentError(fmt::format("parameter {} is in another unit", number));
  const int64_t slice_begin = result.slice.flat_begin, elements = result.slice.elements();
  result.begin = std::clamp<int64_t>(parameter->begin - slice_begin, 0, elements);
  result.end = std::clamp<int64_t>(parameter->end - slice_begin, result.begin, elements);
  result.first = result.begin + slice_begin - parameter->begin;
  result.value = static_cast<float>(value);
  result.stream = parameter->number;
  return result;
}

absl::StatusOr<InitialValues> ReadDrawnValues(const KernelOperands& operands,
                                              const KernelAttributes& attributes) {
  FT_ASSIGN_OR_RETURN(const InitialValues values, ReadInitialValues(operands, attributes));
  if (values.begin < values.end && values.first % 4 != 0)
    return absl::InvalidArgumentError("the slice must begin at a multiple of 4 elements of the parameter");
  return values;
}

}  // namespace ft
