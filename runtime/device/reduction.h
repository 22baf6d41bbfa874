// Sums, maxima and minima over any dimensions, as loops: over the elements of the result, and for each over
// what it reduces.
#pragma once

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/base/reduction_kind.h"
#include "runtime/device/kernel.h"

namespace ft {

// Nested loops; strides of x, in elements. The last is the innermost.
struct ReductionLoops {
  int rank = 0;
  std::array<int64_t, kMaxRank> dims = {};
  std::array<int64_t, kMaxRank> strides = {};

  int64_t count() const;
};

struct Reduction {
  ReductionKind kind = ReductionKind::kSum;
  const void* x = nullptr;
  void* result = nullptr;
  DType dtype = DType::kF32, result_dtype = DType::kF32;
  ReductionLoops kept;     // the elements of the result, in their order
  ReductionLoops reduced;  // what one of them reduces
};

// Attributes `kind`, "sum", "max" or "min", and `dims`, ascending; the result has the others. Floats, whose
// result may be any float, or integers of one type.
absl::StatusOr<Reduction> CheckReduction(const KernelOperands& operands, const KernelAttributes& attributes);

}  // namespace ft
