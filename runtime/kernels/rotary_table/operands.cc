#include "runtime/kernels/rotary_table/operands.h"

#include <limits>

#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"

namespace ft {

absl::StatusOr<RotaryTableOperands> ReadRotaryTable(const KernelOperands& operands,
                                                    const KernelAttributes& attributes) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 0, 2));
  RotaryTableOperands table;
  table.cosine = operands.out[0];
  table.sine = operands.out[1];
  FT_RETURN_IF_ERROR(CheckNotEmpty(table.cosine, "cosine", DType::kF32));
  FT_RETURN_IF_ERROR(CheckSameShape(table.sine, "sine", table.cosine));
  FT_ASSIGN_OR_RETURN(table.base, FloatIn(attributes, "base", std::numeric_limits<float>::min()));
  if (table.cosine.rank != 2)
    return absl::InvalidArgumentError("cosine must be [positions, half of the head size]");
  return table;
}

}  // namespace ft
