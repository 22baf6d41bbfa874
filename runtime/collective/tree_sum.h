// The sum over ranks, in the one order that this project has (design, "same bits").
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/base/dtype.h"
#include "runtime/collective/communicator.h"

namespace ft {

// out[i] = tree(parts[0][i], ..., parts[n - 1][i]) for `count` elements, n >= 1. tree of n values is the tree
// of the first 2^k plus the tree of the rest, 2^k the largest power of two below n. f32, bf16 and f16 are
// accumulated in fp32, f64 in fp64, and rounded to nearest even once; i32 and i64 wrap. `out` may be one of
// the parts.
void TreeSum(absl::Span<const void* const> parts, size_t count, DType dtype, void* out);

// OK when TreeSum can do it. Errors: InvalidArgument for u8.
absl::Status CheckReductions(absl::Span<const ReducePart> parts, const CollectiveLabel& label);

}  // namespace ft
