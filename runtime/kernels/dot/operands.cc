#include "runtime/kernels/dot/operands.h"

#include <algorithm>
#include <limits>

#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"

namespace ft {

absl::StatusOr<BatchedProduct> CheckBatchedProduct(const KernelOperands& operands,
                                                   const KernelAttributes& attributes) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 2, 1));
  const Tensor &a = operands.in[0], &b = operands.in[1], &result = operands.out[0];
  FT_RETURN_IF_ERROR(CheckFloat(a, "a"));
  FT_RETURN_IF_ERROR(CheckNotEmpty(a, "a", a.dtype));
  FT_RETURN_IF_ERROR(CheckNotEmpty(b, "b", a.dtype));
  FT_RETURN_IF_ERROR(CheckFloat(result, "the result"));
  if (a.rank < 2 || b.rank != a.rank || result.rank != a.rank)
    return absl::InvalidArgumentError("a, b and the result must have equally many dimensions, at least 2");
  BatchedProduct product;
  for (int i = 0; i + 2 < a.rank; ++i) {
    if (a.dims[i] != b.dims[i] || a.dims[i] != result.dims[i])
      return absl::InvalidArgumentError("a, b and the result must have the same leading dimensions");
    product.batch *= a.dims[i];
  }
  FT_ASSIGN_OR_RETURN(product.transpose_a, Flag(attributes, "transpose_a"));
  FT_ASSIGN_OR_RETURN(product.transpose_b, Flag(attributes, "transpose_b"));
  const int row = a.rank - 2, column = a.rank - 1;
  product.m = a.dims[product.transpose_a ? column : row];
  product.k = a.dims[product.transpose_a ? row : column];
  product.n = b.dims[product.transpose_b ? row : column];
  if (b.dims[product.transpose_b ? column : row] != product.k)
    return absl::InvalidArgumentError("a and b must agree in the dimension that is summed over");
  if (result.dims[row] != product.m || result.dims[column] != product.n)
    return absl::InvalidArgumentError("the result must have the rows of a and the columns of b");
  if (std::max({product.m, product.n, product.k}) > std::numeric_limits<int32_t>::max())
    return absl::InvalidArgumentError("a product with an extent above 2^31 is too large");
  return product;
}

}  // namespace ft
