#include "runtime/kernels/rope/operands.h"

#include <limits>

#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"
#include "runtime/kernels/attention/operands.h"

namespace ft {

absl::StatusOr<RopeOperands> ReadRope(const KernelOperands& operands, const KernelAttributes& attributes) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 1, 1));
  RopeOperands rope;
  rope.x = operands.in[0];
  rope.result = operands.out[0];
  FT_RETURN_IF_ERROR(CheckFloat(rope.x, "x"));
  FT_RETURN_IF_ERROR(CheckSameShape(rope.result, "result", rope.x));
  FT_ASSIGN_OR_RETURN(rope.heads, IntIn(attributes, "heads", 1, kMaxHeads));
  FT_ASSIGN_OR_RETURN(rope.base, FloatIn(attributes, "base", std::numeric_limits<float>::min()));
  FT_ASSIGN_OR_RETURN(rope.inverse, Flag(attributes, "inverse"));
  if (rope.x.rank != 3 || rope.x.last() < 1 || rope.x.last() % (2 * rope.heads) != 0)
    return absl::InvalidArgumentError("x must be [B, T, heads * head size] with an even head size");
  rope.half = rope.x.last() / rope.heads / 2;
  return rope;
}

}  // namespace ft
