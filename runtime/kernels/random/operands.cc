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
  FT_ASSIGN_OR_RETURN(const int64_t begin, IntIn(attributes, "begin", 0, kMaxUnitElements));
  FT_ASSIGN_OR_RETURN(const int64_t end, IntIn(attributes, "end", begin, kMaxUnitElements));
  FT_ASSIGN_OR_RETURN(const double value, FloatIn(attributes, "value"));
  const int64_t slice_begin = result.slice.flat_begin, elements = result.slice.elements();
  result.begin = std::clamp<int64_t>(begin - slice_begin, 0, elements);
  result.end = std::clamp<int64_t>(end - slice_begin, result.begin, elements);
  result.first = result.begin + slice_begin - begin;
  result.value = static_cast<float>(value);
  return result;
}

absl::StatusOr<uint32_t> ReadNormalStream(const InitialValues& values, const KernelAttributes& attributes) {
  if (values.begin < values.end && values.first % 4 != 0)
    return absl::InvalidArgumentError("the slice must begin at a multiple of 4 elements of the parameter");
  return RandomStream(attributes);
}

}  // namespace ft
