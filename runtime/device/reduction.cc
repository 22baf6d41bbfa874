#include "runtime/device/reduction.h"

#include <algorithm>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"

namespace ft {
namespace {

absl::StatusOr<ReductionKind> KindOf(const KernelAttributes& attributes) {
  FT_ASSIGN_OR_RETURN(const std::string kind, attributes.String("kind"));
  if (kind == "sum") return ReductionKind::kSum;
  if (kind == "max") return ReductionKind::kMax;
  if (kind == "min") return ReductionKind::kMin;
  return absl::InvalidArgumentError(
      fmt::format("attribute 'kind' must be \"sum\", \"max\" or \"min\", got \"{}\"", kind));
}

// A loop around those there are, in one with the last where it steps over whole ones of the new.
void Append(ReductionLoops& loops, int64_t extent, int64_t stride) {
  if (extent == 1) return;
  const int last = loops.rank - 1;
  if (last >= 0 && loops.strides[last] == stride * extent) {
    loops.dims[last] *= extent;
    loops.strides[last] = stride;
    return;
  }
  loops.dims[loops.rank] = extent;
  loops.strides[loops.rank++] = stride;
}

}  // namespace

int64_t ReductionLoops::count() const {
  int64_t n = 1;
  for (int i = 0; i < rank; ++i) n *= dims[i];
  return n;
}

absl::StatusOr<Reduction> CheckReduction(const KernelOperands& operands, const KernelAttributes& attributes) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 1, 1));
  const Tensor &x = operands.in[0], &result = operands.out[0];
  FT_RETURN_IF_ERROR(CheckNotEmpty(x, "x", x.dtype));
  FT_RETURN_IF_ERROR(CheckNotEmpty(result, "the result", result.dtype));
  if (!(IsFloat(x.dtype) && IsFloat(result.dtype)) && !(IsInteger(x.dtype) && x.dtype == result.dtype))
    return absl::InvalidArgumentError(fmt::format("no sums of {} in {}", Name(x.dtype), Name(result.dtype)));
  Reduction reduction;
  FT_ASSIGN_OR_RETURN(reduction.kind, KindOf(attributes));
  FT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, attributes.Ints("dims"));
  reduction.x = x.data;
  reduction.result = result.data;
  reduction.dtype = x.dtype;
  reduction.result_dtype = result.dtype;
  std::array<int64_t, kMaxRank> strides = {};
  int64_t stride = 1;
  for (int i = x.rank - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= x.dims[i];
  }
  size_t next = 0;
  int kept = 0;
  for (int i = 0; i < x.rank; ++i) {
    const bool is_reduced = next < dims.size() && dims[next] == i;
    next += is_reduced ? 1 : 0;
    if (!is_reduced && (kept >= result.rank || result.dims[kept] != x.dims[i]))
      return absl::InvalidArgumentError("the result must have the dimensions of x that 'dims' does not name");
    kept += is_reduced ? 0 : 1;
    Append(is_reduced ? reduction.reduced : reduction.kept, x.dims[i], strides[i]);
  }
  if (next != dims.size() || kept != result.rank)
    return absl::InvalidArgumentError(
        "attribute 'dims' must name dimensions of x, ascending, and the result have the others");
  return reduction;
}

}  // namespace ft
