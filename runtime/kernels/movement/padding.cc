#include "runtime/kernels/movement/padding.h"

#include <algorithm>

#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"

namespace ft {

absl::StatusOr<std::vector<ByteRange>> ReadPadding(const KernelOperands& operands) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 0, 1));
  const Tensor& flat = operands.out[0];
  FT_RETURN_IF_ERROR(CheckFlat(flat, "flat"));
  const int64_t first = flat.flat_begin, last = first + flat.elements();
  const int64_t size = static_cast<int64_t>(SizeOf(flat.dtype));
  std::vector<ByteRange> padding;
  int64_t at = first;
  const auto add_until = [&](int64_t end) {
    if (at < end) padding.push_back({(at - first) * size, (end - first) * size});
  };
  for (const ParameterRange& parameter : flat.parameters) {
    add_until(std::min(parameter.begin, last));
    at = std::max(at, parameter.end);
  }
  add_until(last);
  return padding;
}

}  // namespace ft
