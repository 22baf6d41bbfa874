// Worlds of other launchers, seen through the environment: to keep their processes from training alone.
#pragma once

#include <optional>
#include <string>

#include "runtime/collective/rendezvous/launch_environment.h"

namespace ft {

struct ForeignWorld {
  std::string seen;  // "this is one of several processes started by srun (SLURM_STEP_NUM_TASKS=4)"
  std::string
      settings;  // how RANK and the others follow from what that launcher says; empty: start it by torchrun
};

// A rank computes; an agent (ftrun) starts the ranks of a node.
enum class ProcessKind { kRank, kAgent };

// For a process without RANK: whether it is visibly one of several that were started together, by
//   srun        a task of a step of several (SLURM_STEP_NUM_TASKS; SLURM_NTASKS with SLURM_STEP_ID; a
//   SLURM_PROCID above 0). The size of an allocation is no
//               sign: a program started by the shell of salloc or by a batch script is alone there.
//   Open MPI    OMPI_COMM_WORLD_SIZE
//   MPICH, Intel MPI and other users of Hydra   PMI_SIZE, MPI_LOCALNRANKS
//   MVAPICH     MV2_COMM_WORLD_SIZE
//   PMIx        a PMIX_RANK above 0 (it does not say how many there are)
//   what expects torchrun   PET_NNODES; for ranks, PET_NPROC_PER_NODE
//   any         for ranks, LOCAL_WORLD_SIZE
std::optional<ForeignWorld> FindForeignWorld(EnvironmentLookup lookup, ProcessKind kind);

// InvalidArgument where FindForeignWorld finds one for a rank. One line: the variable, its value, and what to
// set, also for a run of this process alone.
absl::Status CheckStartedAlone(EnvironmentLookup lookup);

}  // namespace ft
