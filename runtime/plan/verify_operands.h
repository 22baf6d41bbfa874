// One operand of an instruction or port by itself.
#pragma once

#include "absl/status/status.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/verify_place.h"

namespace ft {

// It lies inside its buffer on every mesh, and the buffer is alive; an absent operand is well.
absl::Status VerifyOperand(const Place& place, const proto::Operand& operand);

// Of a kernel, each of which has been verified: nothing that it writes shares a byte with anything else it
// touches, except a result that stands in the place of an operand, exactly, in the same type. So nothing that
// a kernel has read and checked, such as an index, changes under it.
absl::Status VerifyApart(const Place& place, const proto::Instruction& instruction);

}  // namespace ft
