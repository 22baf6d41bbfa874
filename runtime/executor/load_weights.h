// Parameters from a checkpoint into the arena.
#pragma once

#include "absl/status/status.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/initial_weights.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Reads of each parameter what this rank holds, into the weights that the optimizer updates and, rounded,
// into a 16-bit working copy beside them. The executor's arena must be fresh: the rest of it, optimizer state
// and padding, stays zero. `weights` are those of OpenInitialWeights for the same plan. FailedPrecondition
// when the plan keeps its parameters neither in fp32 nor in bf16.
absl::Status LoadWeights(const proto::Plan& plan, const Executor& executor, const InitialWeights& weights);

}  // namespace ft
