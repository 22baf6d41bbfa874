// Whether the addresses of a bound plan are right: a second opinion on bind.cc and memplan, which shares no
// code with them.
#pragma once

#include "absl/status/status.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// `plan` has passed VerifyPlan. Every buffer lies inside the arena of its space, at a multiple of 256, with
// the bytes that its size asks for on bound.mesh and bound.device_class; two buffers that live at the same
// time (persistent ones always do) share none. Errors: Internal, one line that names the buffers, their
// bytes, and the instruction at which both live.
absl::Status VerifyBound(const proto::Plan& plan, const BoundPlan& bound);

}  // namespace ft
