#include "runtime/kernels/movement/strided_copy.h"

#include <algorithm>
#include <string_view>

#include "fmt/format.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"

namespace ft {
namespace {

using Extents = std::array<int64_t, kMaxRank>;

// In elements; row-major.
Extents Strides(const Tensor& tensor) {
  Extents strides = {};
  int64_t stride = 1;
  for (int i = tensor.rank - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= tensor.dims[i];
  }
  return strides;
}

absl::Status CheckBoth(const Tensor& x, const Tensor& result) {
  FT_RETURN_IF_ERROR(CheckNotEmpty(x, "x", x.dtype));
  return CheckNotEmpty(result, "the result", x.dtype);
}

absl::Status CheckNumbers(absl::Span<const int64_t> numbers, std::string_view name, int rank) {
  if (static_cast<int>(numbers.size()) == rank) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("attribute '{}' has {} numbers for {} dimensions", name, numbers.size(), rank));
}

// A copy of all of `result`'s elements but for what the caller sets.
StridedCopy Whole(const Tensor& x, const Tensor& result) {
  return {.from = x.data,
          .to = result.data,
          .element_bytes = static_cast<int64_t>(SizeOf(x.dtype)),
          .rank = result.rank,
          .dims = result.dims,
          .from_strides = {},
          .to_strides = Strides(result)};
}

// The address of the element `at` of a tensor whose part of extents `part` begins there; refused where it
// does not lie inside.
absl::StatusOr<char*> BoxAt(const Tensor& tensor, const Tensor& part, absl::Span<const int64_t> at,
                            std::string_view name) {
  FT_RETURN_IF_ERROR(CheckNumbers(at, name, tensor.rank));
  if (part.rank != tensor.rank)
    return absl::InvalidArgumentError("x and the result must have equally many dimensions");
  const Extents strides = Strides(tensor);
  int64_t offset = 0;
  for (int i = 0; i < tensor.rank; ++i) {
    if (at[i] < 0 || part.dims[i] > tensor.dims[i] || at[i] > tensor.dims[i] - part.dims[i]) {
      return absl::InvalidArgumentError(
          fmt::format("{} elements from {} on do not lie in dimension {}, which has {}", part.dims[i], at[i],
                      i, tensor.dims[i]));
    }
    offset += at[i] * strides[i];
  }
  return tensor.as<char>() + offset * static_cast<int64_t>(SizeOf(tensor.dtype));
}

}  // namespace

int64_t StridedCopy::elements() const {
  int64_t n = 1;
  for (int i = 0; i < rank; ++i) n *= dims[i];
  return n;
}

StridedCopy Simplified(StridedCopy copy) {
  StridedCopy simple = copy;
  simple.rank = 0;
  for (int i = 0; i < copy.rank; ++i) {
    if (copy.dims[i] == 1) continue;
    const int last = simple.rank - 1;
    // The dimension before steps over whole ones of this: they are one.
    if (last >= 0 && simple.from_strides[last] == copy.from_strides[i] * copy.dims[i] &&
        simple.to_strides[last] == copy.to_strides[i] * copy.dims[i]) {
      simple.dims[last] *= copy.dims[i];
      simple.from_strides[last] = copy.from_strides[i];
      simple.to_strides[last] = copy.to_strides[i];
      continue;
    }
    simple.dims[simple.rank] = copy.dims[i];
    simple.from_strides[simple.rank] = copy.from_strides[i];
    simple.to_strides[simple.rank] = copy.to_strides[i];
    ++simple.rank;
  }
  return simple;
}

absl::StatusOr<StridedCopy> TransposeCopy(const Tensor& x, const Tensor& result,
                                          absl::Span<const int64_t> permutation) {
  FT_RETURN_IF_ERROR(CheckBoth(x, result));
  FT_RETURN_IF_ERROR(CheckNumbers(permutation, "permutation", result.rank));
  StridedCopy copy = Whole(x, result);
  const Extents strides = Strides(x);
  std::array<bool, kMaxRank> seen = {};
  for (int i = 0; i < result.rank; ++i) {
    const int64_t from = permutation[i];
    if (result.rank != x.rank || from < 0 || from >= x.rank || seen[from] || x.dims[from] != result.dims[i])
      return absl::InvalidArgumentError(
          "the result must have the dimensions of x in the order of 'permutation'");
    seen[from] = true;
    copy.from_strides[i] = strides[from];
  }
  return copy;
}

absl::StatusOr<StridedCopy> SliceCopy(const Tensor& x, const Tensor& result,
                                      absl::Span<const int64_t> begin) {
  FT_RETURN_IF_ERROR(CheckBoth(x, result));
  StridedCopy copy = Whole(x, result);
  FT_ASSIGN_OR_RETURN(copy.from, BoxAt(x, result, begin, "begin"));
  copy.from_strides = Strides(x);
  return copy;
}

absl::StatusOr<StridedCopy> PadCopy(const Tensor& x, const Tensor& result, absl::Span<const int64_t> low) {
  FT_RETURN_IF_ERROR(CheckBoth(x, result));
  StridedCopy copy = Whole(x, result);
  FT_ASSIGN_OR_RETURN(copy.to, BoxAt(result, x, low, "low"));
  copy.dims = x.dims;
  copy.from_strides = Strides(x);
  return copy;
}

absl::StatusOr<StridedCopy> BroadcastCopy(const Tensor& x, const Tensor& result) {
  FT_RETURN_IF_ERROR(CheckBoth(x, result));
  StridedCopy copy = Whole(x, result);
  const Extents strides = Strides(x);
  const int missing = result.rank - x.rank;
  if (missing < 0) return absl::InvalidArgumentError("the result must have all dimensions of x");
  for (int i = 0; i < x.rank; ++i) {
    if (x.dims[i] != 1 && x.dims[i] != result.dims[missing + i])
      return absl::InvalidArgumentError(
          fmt::format("dimension {} of x has {} elements, that of the result {}", i, x.dims[i],
                      result.dims[missing + i]));
    copy.from_strides[missing + i] = x.dims[i] == 1 ? 0 : strides[i];
  }
  return copy;
}

}  // namespace ft
