#include "runtime/kernels/index/operands.h"

#include <limits>
#include <string_view>

#include "fmt/format.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"

namespace ft {
namespace {

// a and b have the same dimensions but for the last.
absl::Status CheckRows(const Tensor& a, const Tensor& b) {
  bool same = a.rank == b.rank && a.rank >= 1;
  for (int i = 0; same && i + 1 < a.rank; ++i) same = a.dims[i] == b.dims[i];
  return same ? absl::OkStatus() : absl::InvalidArgumentError("operands and result must have the same rows");
}

absl::Status CheckNumbers(const Tensor& x, std::string_view name) {
  FT_RETURN_IF_ERROR(CheckNotEmpty(x, name, x.dtype));
  if (IsFloat(x.dtype) || IsInteger(x.dtype)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{} has elements of type {}, which the kernel does not take", name, Name(x.dtype)));
}

// Ids are 32 bits.
absl::Status CheckColumns(int64_t columns) {
  if (columns <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("rows of {} elements are too long for ids of 32 bits", columns));
}

absl::StatusOr<RowScan> CheckScan(const KernelOperands& operands) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 1, 1));
  const Tensor &x = operands.in[0], &result = operands.out[0];
  FT_RETURN_IF_ERROR(CheckNumbers(x, "x"));
  FT_RETURN_IF_ERROR(CheckNotEmpty(result, "the result", result.dtype));
  FT_RETURN_IF_ERROR(CheckRows(x, result));
  return RowScan{x.data, result.data, x.dtype, result.dtype, x.rows(), x.last(), result.last()};
}

absl::Status CheckEnds(const Tensor& ends, int64_t groups) {
  FT_RETURN_IF_ERROR(CheckSize(ends, "ends", groups, DType::kI32));
  return groups > 0 ? absl::OkStatus() : absl::InvalidArgumentError("there are no groups");
}

absl::Status CheckRank(const Tensor& tensor, std::string_view name, int rank) {
  if (tensor.rank == rank) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{} must have {} dimensions, it has {}", name, rank, tensor.rank));
}

absl::Status CheckExtents(const GroupedProduct& product) {
  if (std::max({product.rows, product.groups, product.k, product.n}) <= std::numeric_limits<int32_t>::max())
    return absl::OkStatus();
  return absl::InvalidArgumentError("a product with an extent above 2^31 is too large");
}

}  // namespace

absl::StatusOr<ElementsByIds> CheckGatherElements(const KernelOperands& operands) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 2, 1));
  const Tensor &x = operands.in[0], &ids = operands.in[1], &result = operands.out[0];
  FT_RETURN_IF_ERROR(CheckNotEmpty(x, "x", x.dtype));
  FT_RETURN_IF_ERROR(CheckNotEmpty(ids, "ids", DType::kI32));
  FT_RETURN_IF_ERROR(CheckRows(x, ids));
  FT_RETURN_IF_ERROR(CheckColumns(x.last()));
  FT_RETURN_IF_ERROR(CheckSize(result, "the result", ids.elements(), x.dtype));
  return ElementsByIds{x.data,  ids.as<int32_t>(), result.data, x.dtype,
                       x.dtype, ids.rows(),        ids.last(),  x.last()};
}

absl::StatusOr<ElementsByIds> CheckScatterAddElements(const KernelOperands& operands) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 2, 1));
  const Tensor &x = operands.in[0], &ids = operands.in[1], &result = operands.out[0];
  FT_RETURN_IF_ERROR(CheckFloat(x, "x"));
  FT_RETURN_IF_ERROR(CheckNotEmpty(x, "x", x.dtype));
  FT_RETURN_IF_ERROR(CheckNotEmpty(ids, "ids", DType::kI32));
  FT_RETURN_IF_ERROR(CheckFloat(result, "the result"));
  FT_RETURN_IF_ERROR(CheckRows(x, result));
  FT_RETURN_IF_ERROR(CheckRows(x, ids));
  FT_RETURN_IF_ERROR(CheckSize(ids, "ids", x.elements(), DType::kI32));
  FT_RETURN_IF_ERROR(CheckColumns(result.last()));
  return ElementsByIds{x.data,       ids.as<int32_t>(), result.data, x.dtype,
                       result.dtype, x.rows(),          x.last(),    result.last()};
}

absl::StatusOr<RowScan> CheckCumsum(const KernelOperands& operands, const KernelAttributes& attributes) {
  FT_ASSIGN_OR_RETURN(RowScan scan, CheckScan(operands));
  const bool typed = IsFloat(scan.dtype) ? IsFloat(scan.result_dtype) : scan.dtype == scan.result_dtype;
  if (!typed || scan.columns != scan.result_columns)
    return absl::InvalidArgumentError("the result must have the shape of x, and its type or another float");
  FT_ASSIGN_OR_RETURN(scan.backwards, Flag(attributes, "reverse"));
  return scan;
}

absl::StatusOr<RowScan> CheckArgsort(const KernelOperands& operands, const KernelAttributes& attributes) {
  FT_ASSIGN_OR_RETURN(RowScan scan, CheckScan(operands));
  FT_RETURN_IF_ERROR(CheckColumns(scan.columns));
  if (scan.result_dtype != DType::kI32 || scan.result_columns > scan.columns)
    return absl::InvalidArgumentError("the result must be i32 and no wider than x");
  FT_ASSIGN_OR_RETURN(scan.backwards, Flag(attributes, "descending"));
  return scan;
}

absl::StatusOr<Histogram> CheckHistogram(const KernelOperands& operands) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 1, 1));
  const Tensor &ids = operands.in[0], &result = operands.out[0];
  FT_RETURN_IF_ERROR(CheckNotEmpty(ids, "ids", DType::kI32));
  FT_RETURN_IF_ERROR(CheckNotEmpty(result, "the result", DType::kI32));
  FT_RETURN_IF_ERROR(CheckColumns(ids.elements()));
  return Histogram{ids.as<int32_t>(), result.as<int32_t>(), ids.elements(), result.elements()};
}

absl::StatusOr<GroupedProduct> CheckGroupedDot(const KernelOperands& operands,
                                               const KernelAttributes& attributes) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 3, 1));
  const Tensor &x = operands.in[0], &w = operands.in[1], &ends = operands.in[2], &result = operands.out[0];
  FT_RETURN_IF_ERROR(CheckFloat(x, "x"));
  FT_RETURN_IF_ERROR(CheckNotEmpty(x, "x", x.dtype));
  FT_RETURN_IF_ERROR(CheckNotEmpty(w, "w", x.dtype));
  FT_RETURN_IF_ERROR(CheckFloat(result, "the result"));
  FT_RETURN_IF_ERROR(CheckRank(x, "x", 2));
  FT_RETURN_IF_ERROR(CheckRank(w, "w", 3));
  FT_RETURN_IF_ERROR(CheckRank(result, "the result", 2));
  FT_RETURN_IF_ERROR(CheckEnds(ends, w.dims[0]));
  GroupedProduct product;
  FT_ASSIGN_OR_RETURN(product.transpose_b, Flag(attributes, "transpose_b"));
  product.rows = x.dims[0];
  product.groups = w.dims[0];
  product.k = x.dims[1];
  product.n = w.dims[product.transpose_b ? 1 : 2];
  product.ends = ends.as<int32_t>();
  if (w.dims[product.transpose_b ? 2 : 1] != product.k || result.dims[0] != product.rows ||
      result.dims[1] != product.n)
    return absl::InvalidArgumentError(
        "x must have the rows of w's matrices for columns, the result the rows of x and their columns");
  FT_RETURN_IF_ERROR(CheckExtents(product));
  return product;
}

absl::StatusOr<GroupedProduct> CheckGroupedDotGrad(const KernelOperands& operands) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 4, 1));
  const Tensor &x = operands.in[0], &dy = operands.in[1], &ends = operands.in[2], &acc = operands.in[3],
               &dw = operands.out[0];
  FT_RETURN_IF_ERROR(CheckFloat(x, "x"));
  FT_RETURN_IF_ERROR(CheckNotEmpty(x, "x", x.dtype));
  FT_RETURN_IF_ERROR(CheckNotEmpty(dy, "dy", x.dtype));
  FT_RETURN_IF_ERROR(CheckFloat(dw, "dw"));
  FT_RETURN_IF_ERROR(CheckRank(x, "x", 2));
  FT_RETURN_IF_ERROR(CheckRank(dy, "dy", 2));
  FT_RETURN_IF_ERROR(CheckRank(dw, "dw", 3));
  FT_RETURN_IF_ERROR(CheckEnds(ends, dw.dims[0]));
  if (acc.present()) FT_RETURN_IF_ERROR(CheckSameShape(acc, "acc", dw));
  FT_RETURN_IF_ERROR(CheckAccumulator(acc, dw));
  if (x.dims[0] != dy.dims[0] || dw.dims[1] != x.dims[1] || dw.dims[2] != dy.dims[1])
    return absl::InvalidArgumentError("x and dy must have the same rows, dw their columns");
  const GroupedProduct product = {x.dims[0], dw.dims[0], x.dims[1], dy.dims[1], false, ends.as<int32_t>()};
  FT_RETURN_IF_ERROR(CheckExtents(product));
  return product;
}

}  // namespace ft
