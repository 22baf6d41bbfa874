#include "runtime/kernels/binary_mapper/operands.h"

#include "fmt/format.h"
#include "runtime/base/checked.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/workspace.h"
#include "runtime/device/check.h"

namespace ft {
namespace {

absl::Status CheckTable(const Tensor& table, const Tensor& logits) {
  FT_RETURN_IF_ERROR(CheckFloat(logits, "logits"));
  FT_RETURN_IF_ERROR(CheckPresent(table, "table", logits.dtype));
  const int64_t bits = logits.last();
  if (bits >= 1 && bits <= kMaxCodeBits && table.rows() == int64_t{1} << bits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("table must have 2^H rows for H logits, H at most {}, got {} and H = {}", kMaxCodeBits,
                  table.rows(), bits));
}

}  // namespace

absl::StatusOr<BinaryMapperOperands> ReadBinaryMapper(const KernelOperands& operands) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 3, 1));
  const BinaryMapperOperands read{operands.in[0], operands.in[2], operands.in[1], operands.out[0]};
  FT_RETURN_IF_ERROR(CheckTable(read.table, read.logits));
  FT_RETURN_IF_ERROR(CheckSize(read.index, "index", read.logits.rows(), DType::kI32));
  FT_RETURN_IF_ERROR(CheckSize(read.result, "result", CheckedMul(read.index.elements(), read.table.last()),
                               read.table.dtype));
  return read;
}

absl::StatusOr<BinaryMapperOperands> ReadBinaryMapperGrad(const KernelOperands& operands) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 3, 1));
  const BinaryMapperOperands read{operands.in[1], operands.in[2], operands.in[0], operands.out[0]};
  FT_RETURN_IF_ERROR(CheckTable(read.table, read.logits));
  FT_RETURN_IF_ERROR(
      CheckSize(read.index, "dy", CheckedMul(read.logits.rows(), read.table.last()), read.table.dtype));
  FT_RETURN_IF_ERROR(CheckSameShape(read.result, "dlogits", read.logits));
  return read;
}

}  // namespace ft
