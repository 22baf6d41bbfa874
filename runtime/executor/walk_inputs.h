// Numbers for the inputs of a plan's programs where no data is: of their types, in their ranges.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/device/kernel.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// The bytes of a port of any program. Ids of a model's inputs are uniform below their bound, in one segment,
// at full length; floats are uniform in [-1, 1). Of the executor's own: a learning rate of 1e-5, no step
// done, {seed, 0, 0} to draw from, the plan's first loss scale. Errors: of LossScalingOf.
absl::StatusOr<std::vector<char>> WalkInput(const proto::Plan& plan, const proto::Port& port,
                                            const Tensor& tensor, uint64_t seed);

}  // namespace ft
