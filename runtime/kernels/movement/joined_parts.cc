#include "runtime/kernels/movement/joined_parts.h"

#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"

namespace ft {
namespace {

absl::StatusOr<int64_t> AxisOf(const KernelAttributes& attributes, const Tensor& whole) {
  if (whole.rank == 0) return absl::InvalidArgumentError("the whole has no dimension");
  if (!attributes.Has("axis")) return whole.rank - 1;
  FT_ASSIGN_OR_RETURN(const int64_t axis, IntIn(attributes, "axis", -1, whole.rank - 1));
  return axis < 0 ? whole.rank - 1 : axis;
}

// A matrix whose rows are the dimensions before `axis`.
struct RowsAndBytes {
  int64_t rows = 1;
  int64_t bytes = 1;  // of a row
};

RowsAndBytes CutAt(const Tensor& tensor, int64_t axis) {
  RowsAndBytes cut = {1, static_cast<int64_t>(SizeOf(tensor.dtype))};
  for (int64_t i = 0; i < tensor.rank; ++i) (i < axis ? cut.rows : cut.bytes) *= tensor.dims[i];
  return cut;
}

}  // namespace

absl::StatusOr<JoinedParts> CheckParts(const Tensor& whole, const std::vector<Tensor>& parts,
                                       const KernelAttributes& attributes) {
  FT_RETURN_IF_ERROR(CheckNotEmpty(whole, "the whole", whole.dtype));
  FT_ASSIGN_OR_RETURN(const int64_t axis, AxisOf(attributes, whole));
  const auto [rows, row_bytes] = CutAt(whole, axis);
  JoinedParts joined = {rows, row_bytes, {}};
  int64_t offset = 0;
  for (const Tensor& part : parts) {
    FT_RETURN_IF_ERROR(CheckPresent(part, "part", whole.dtype));
    const auto [part_rows, bytes] = CutAt(part, axis);
    if (part.rank != whole.rank || part_rows != rows)
      return absl::InvalidArgumentError("all parts must have the rows of the whole");
    joined.parts.push_back({part.as<char>(), offset, bytes});
    offset += bytes;
  }
  if (offset != row_bytes) return absl::InvalidArgumentError("the parts' columns must add up to the whole's");
  return joined;
}

}  // namespace ft
