// Which programs make a training step.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/executor/executor.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// A step runs `micro` micro_steps - 1 times, then `step`.
struct TrainingPrograms {
  int step = 0;
  int micro = -1;  // none when micro_steps is 1
  int64_t micro_steps = 1;

  // Commands of all programs that a step runs.
  size_t num_commands(const Executor& executor) const;
};

// Errors: FailedPrecondition when the plan lacks one of them.
absl::StatusOr<TrainingPrograms> FindTrainingPrograms(const proto::Plan& plan, const Executor& executor);

}  // namespace ft
