#include "runtime/kernels/embedding/operands.h"

#include "runtime/base/checked.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"

namespace ft {

absl::StatusOr<EmbeddingOperands> ReadEmbedding(const KernelOperands& operands) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 2, 1));
  const Tensor &ids = operands.in[0], &table = operands.in[1], &result = operands.out[0];
  FT_RETURN_IF_ERROR(CheckPresent(ids, "ids", DType::kI32));
  FT_RETURN_IF_ERROR(CheckFloat(table, "table"));
  FT_RETURN_IF_ERROR(CheckSize(result, "result", CheckedMul(ids.elements(), table.last()), table.dtype));
  return EmbeddingOperands{ids, table, result};
}

absl::StatusOr<EmbeddingOperands> ReadEmbeddingGrad(const KernelOperands& operands) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 3, 1));
  const Tensor &ids = operands.in[0], &dy = operands.in[1], &acc = operands.in[2], &table = operands.out[0];
  FT_RETURN_IF_ERROR(CheckPresent(ids, "ids", DType::kI32));
  FT_RETURN_IF_ERROR(CheckFloat(table, "dtable"));
  FT_RETURN_IF_ERROR(CheckFloatSize(dy, "dy", CheckedMul(ids.elements(), table.last())));
  if (acc.present()) FT_RETURN_IF_ERROR(CheckSameShape(acc, "acc", table));
  FT_RETURN_IF_ERROR(CheckAccumulator(acc, table));
  return EmbeddingOperands{ids, table, dy, !acc.present()};
}

}  // namespace ft
