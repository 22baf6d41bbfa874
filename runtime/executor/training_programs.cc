#include "runtime/executor/training_programs.h"

#include <algorithm>

#include "runtime/base/status_macros.h"

namespace ft {

size_t TrainingPrograms::num_commands(const Executor& executor) const {
  const size_t micro_commands =
      micro_steps == 1 ? 0 : executor.num_commands(micro) * static_cast<size_t>(micro_steps - 1);
  return micro_commands + executor.num_commands(step);
}

absl::StatusOr<TrainingPrograms> FindTrainingPrograms(const proto::Plan& plan, const Executor& executor) {
  TrainingPrograms programs;
  programs.micro_steps = std::max<int64_t>(1, plan.micro_steps());
  FT_ASSIGN_OR_RETURN(programs.step, executor.FindProgram("train_step"));
  if (programs.micro_steps > 1) {
    FT_ASSIGN_OR_RETURN(programs.micro, executor.FindProgram("train_micro"));
  }
  return programs;
}

}  // namespace ft
