// Whether a plan may be run: everything an executor relies on, checked once when it is loaded.
#pragma once

#include "absl/status/status.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Dimensions that an operand may have.
inline constexpr int kMaxOperandRank = 4;

// `plan` may come from anywhere. Checks, in this order:
//  - indices: units, buffers, programs and operands exist, enums are known, numbers stay below overflow
//  - parameters lie inside their unit, on block boundaries, without overlap
//  - operands lie inside their buffers on every mesh the plan can run on; live ranges cover every use
//  - `after` names earlier instructions on other streams; every collective is waited for
//  - a buffer that is not persistent is written before it is read
//  - two instructions that touch one buffer, one of them writing, are ordered by streams and `after`
//  (happens-before); so are
//    the last uses of a buffer and the first use of any buffer that begins its life later, which may get the
//    same bytes
// Errors: InvalidArgument, one line that names program, instruction, kernel and layer. At most a few seconds
// for the largest plans; never recurses, never allocates more than in proportion to the plan.
absl::Status VerifyPlan(const proto::Plan& plan);

}  // namespace ft
