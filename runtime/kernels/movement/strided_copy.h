// Moving elements: one box of a tensor to a box of another, each with strides of its own. transpose, slice,
// pad, broadcast and concat along any axis are such copies; backends have one kernel for all of them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/device/kernel.h"

namespace ft {

// to[i . to_strides] = from[i . from_strides] for all i below `dims`, elements of `element_bytes`. A source's
// stride may be 0.
struct StridedCopy {
  const void* from = nullptr;
  void* to = nullptr;
  int64_t element_bytes = 0;
  int rank = 0;
  std::array<int64_t, kMaxRank> dims = {};
  std::array<int64_t, kMaxRank> from_strides = {};  // in elements
  std::array<int64_t, kMaxRank> to_strides = {};

  int64_t elements() const;
};

// The same copy with no dimension of one element, and none that goes on where the next ends.
StridedCopy Simplified(StridedCopy copy);

// All refuse with InvalidArgument what does not fit: types, extents, attributes.
// Dimension i of the result is permutation[i] of x.
absl::StatusOr<StridedCopy> TransposeCopy(const Tensor& x, const Tensor& result,
                                          absl::Span<const int64_t> permutation);
// The box of x of the result's extents that begins at `begin`.
absl::StatusOr<StridedCopy> SliceCopy(const Tensor& x, const Tensor& result, absl::Span<const int64_t> begin);
// x goes to the box of the result that begins at `low`; nothing else is written.
absl::StatusOr<StridedCopy> PadCopy(const Tensor& x, const Tensor& result, absl::Span<const int64_t> low);
// Dimensions are aligned at the last; those that x lacks, or has with one element, are repeated.
absl::StatusOr<StridedCopy> BroadcastCopy(const Tensor& x, const Tensor& result);

}  // namespace ft
