// A collective of a plan as work for a stream.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/collective/communicator.h"
#include "runtime/device/command.h"
#include "runtime/executor/executor_position.h"
#include "runtime/executor/operand_resolver.h"
#include "runtime/plan/mesh.h"

namespace ft {

// Told of the first failure; wakes the other communicators.
using FailureHandler = std::function<void(const absl::Status&)>;

struct CollectiveSite {
  std::string place;  // "train_step, instruction 12 (all_gather transformer.h.3, layer transformer.h.3)"
  std::string title;  // "all_gather transformer.h.3"
  Mesh mesh;
  CollectiveCount* count;  // of its stream and axis; must outlive the task
};

// All parts of the instruction are one call of `communicator`, which must span exactly its axis. Errors:
// Internal when it does not; InvalidArgument for a type that cannot be summed. Whatever the task returns
// names the site.
absl::StatusOr<std::unique_ptr<HostTask>> MakeCollectiveTask(const proto::Instruction& instruction,
                                                             const OperandResolver& resolver,
                                                             Communicator& communicator, CollectiveSite site,
                                                             FailureHandler on_failure);

}  // namespace ft
