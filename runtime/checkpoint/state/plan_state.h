// The state that a plan keeps from step to step.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/state/state_layout.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Weights (the master ones, where the plan has them) and what the optimizer keeps, on `mesh`. Gradients are
// not state: between steps they are spent. Nor is a 16-bit working copy, which follows from the weights. The
// plan must have passed VerifyPlan. Errors: FailedPrecondition for a plan that does not say in which type it
// keeps a state.
absl::StatusOr<StateLayout> StateOfPlan(const proto::Plan& plan, const Mesh& mesh);

// The plan's buffer of a state; -1: none.
int64_t BufferOfState(const proto::Plan& plan, const StateBuffer& state);

// 16 hexadecimal digits that tell models apart: of the parameters' names and shapes and of the facts,
// whatever the units.
std::string ModelFingerprint(const proto::Plan& plan);

}  // namespace ft
