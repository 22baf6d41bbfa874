// One operand of an instruction or port by itself.
#pragma once

#include "absl/status/status.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/verify_place.h"

namespace ft {

// It lies inside its buffer on every mesh, and the buffer is alive; an absent operand is well.
absl::Status VerifyOperand(const Place& place, const proto::Operand& operand);

}  // namespace ft
