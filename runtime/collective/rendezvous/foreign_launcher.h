// Worlds of other launchers, seen through the environment: to keep their processes from training alone.
#pragma once

#include <optional>
#include <string>

#include "runtime/collective/rendezvous/launch_environment.h"

namespace ft {

struct ForeignWorld {
  std::string seen;          // "this is one of several processes started by srun (SLURM_STEP_NUM_TASKS=4)"
  bool of_torchrun = false;  // torchrun or ftrun is expected to start the ranks
};

// A rank computes; an agent (ftrun) starts the ranks of a node.
enum class ProcessKind { kRank, kAgent };

// For a process without RANK that a launcher of launchers.h has not given one, and for agents: whether it is
// visibly one of several that were started together, by
//   a launcher of the table   a number of processes above 1, or a rank above 0, whatever else is missing.
//               The size of a Slurm allocation is no sign: a program started by the shell of salloc or by a
//               batch script is alone there.
//   PMIx        a PMIX_RANK above 0 (it does not say how many there are)
//   what expects torchrun   PET_NNODES; for ranks, PET_NPROC_PER_NODE
//   any         for ranks, LOCAL_WORLD_SIZE; for agents, WORLD_SIZE
std::optional<ForeignWorld> FindForeignWorld(EnvironmentLookup lookup, ProcessKind kind);

// InvalidArgument where FindForeignWorld finds one for a rank, and in a pod of an indexed Job. One line: the
// variable, its value, and what to set, also for a run of this process alone.
absl::Status CheckStartedAlone(EnvironmentLookup lookup);

// For a run of one rank in a Slurm allocation of several tasks: one line that says so; else empty.
std::string RemarkOnAllocation(EnvironmentLookup lookup);

}  // namespace ft
