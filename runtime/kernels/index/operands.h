// What the primitives that choose by integers are given, checked. Rows are those of the last dimension.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/device/kernel.h"

namespace ft {

// gather_elements: result[row, k] = x[row, ids[row, k]]. scatter_add_elements: result[row, ids[row, k]] +=
// x[row, k].
struct ElementsByIds {
  const void* x = nullptr;
  const int32_t* ids = nullptr;
  void* result = nullptr;
  DType dtype = DType::kF32, result_dtype = DType::kF32;
  int64_t rows = 0;
  int64_t ids_columns = 0;
  int64_t other_columns = 0;  // what an id chooses from: columns of x, or of the result
};
absl::StatusOr<ElementsByIds> CheckGatherElements(const KernelOperands& operands);
absl::StatusOr<ElementsByIds> CheckScatterAddElements(const KernelOperands& operands);

// cumsum (attribute `reverse`) and argsort (attribute `descending`).
struct RowScan {
  const void* x = nullptr;
  void* result = nullptr;
  DType dtype = DType::kF32, result_dtype = DType::kF32;
  int64_t rows = 0, columns = 0;
  int64_t result_columns = 0;
  bool backwards = false;
};
absl::StatusOr<RowScan> CheckCumsum(const KernelOperands& operands, const KernelAttributes& attributes);
absl::StatusOr<RowScan> CheckArgsort(const KernelOperands& operands, const KernelAttributes& attributes);

struct Histogram {
  const int32_t* ids = nullptr;
  int32_t* result = nullptr;
  int64_t elements = 0, counts = 0;
};
absl::StatusOr<Histogram> CheckHistogram(const KernelOperands& operands);

// grouped_dot: result[row] = x[row] op(w[g]), x [rows, k], op(w[g]) [k, n]. grouped_dot_grad: dw[g] = the
// rows of x, transposed, times those of dy, [k, n].
struct GroupedProduct {
  int64_t rows = 0, groups = 0, k = 0, n = 0;
  bool transpose_b = false;
  const int32_t* ends = nullptr;

  // The end of group g, whose begin is that of the group before: ascending, inside of the rows.
  int64_t End(int64_t begin, int64_t group) const { return std::clamp<int64_t>(ends[group], begin, rows); }
};
absl::StatusOr<GroupedProduct> CheckGroupedDot(const KernelOperands& operands,
                                               const KernelAttributes& attributes);
absl::StatusOr<GroupedProduct> CheckGroupedDotGrad(const KernelOperands& operands);

}  // namespace ft
