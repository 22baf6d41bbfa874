// The state of a run between a checkpoint and the arena.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/state/checkpoint_reader.h"
#include "runtime/checkpoint/state/share_writer.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/state_at_rest.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Whether the checkpoint holds the state of `state`, that of a plan: tensor by tensor, whatever the units,
// the mesh and the types of elements; of type local everything must be equal. Errors: InvalidArgument says
// what is not, and what to do.
absl::Status CheckSameState(const StateLayout& state, const CheckpointReader& reader);

// The same of weights alone, WeightsOf a state: what else the checkpoint holds is passed over. Of type local
// units have to be equal.
absl::Status CheckSameWeights(const StateLayout& weights, const CheckpointReader& reader);

// Without what the optimizer keeps.
StateLayout WeightsOf(StateLayout state);

// Reads what this rank holds of each state, and rounds weights into a 16-bit working copy beside them. Values
// that have the type of the checkpoint keep their bits; others are rounded to nearest, ties to even. The rest
// of the arena is left as it is. `state` is StateOfPlan of the plan and the executor's mesh, and has passed
// CheckSameState; or its weights, which have passed CheckSameWeights. Errors: those of
// CheckpointReader::Read.
absl::Status LoadState(const proto::Plan& plan, const StateLayout& state, const Executor& executor,
                       CheckpointReader& reader);

// Sets all that LoadState sets to zero, as in a fresh arena.
absl::Status ClearState(const proto::Plan& plan, const StateLayout& state, const Executor& executor);

// The arena as the source of what a rank saves; between runs only.
class ArenaSource : public StateSource {
 public:
  ArenaSource(const proto::Plan& plan, const StateLayout& state, const Executor& executor);
  absl::StatusOr<const std::byte*> Get(const Extent& extent, uint64_t offset, uint64_t bytes,
                                       std::byte* scratch) override;

 private:
  const Executor& executor_;
  std::vector<StateAtRest> buffers_;  // by buffer of the state
};

}  // namespace ft
