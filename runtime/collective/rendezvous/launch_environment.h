// Who am I in this run: what the launcher (torchrun, ftrun, srun, mpirun, a Kubernetes operator, a shell)
// said through the environment.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/collective/rendezvous/environment_variables.h"

namespace ft {

struct LaunchEnvironment {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;        // on this node; 0 when the launcher did not say
  int local_world_size = 1;  // ranks on this node; 1 when the launcher did not say
  int group_rank = 0;        // the node's number; 0 when the launcher did not say

  std::string master_addr;   // name or address; empty for a run of one rank without a launcher
  uint16_t master_port = 0;  // of the store
  // True: the launcher's agent serves the store. False: rank 0 has to.
  bool agent_store = false;

  std::string run_id = "none";  // TORCHELASTIC_RUN_ID, or the number of the launcher's job
  int restart_count = 0;        // TORCHELASTIC_RESTART_COUNT, or SLURM_RESTART_COUNT
  std::string error_file;       // TORCHELASTIC_ERROR_FILE; empty: none wanted

  std::string launcher;  // whose variables were read, "srun"; empty: RANK and its like, or none
  std::string remark;    // one line that the user should see; mostly empty
};

// The process at the other end of a socket that this one inherited; 0 when that is not known.
using PeerProcess = int (*)(int descriptor);

// Reads RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, MASTER_ADDR, MASTER_PORT and
// TORCHELASTIC_*. Without RANK, the variables of another launcher say the same (launchers.h). With neither,
// and none of WORLD_SIZE and MASTER_* set, it is a run of one rank, unless a launcher has visibly started
// more (CheckStartedAlone). Errors: InvalidArgument, one line that names the variable, its value and what to
// do.
absl::StatusOr<LaunchEnvironment> ParseLaunchEnvironment(EnvironmentLookup lookup,
                                                         PeerProcess peer_process = nullptr);

// The same from this process's own environment.
absl::StatusOr<LaunchEnvironment> LaunchEnvironmentOfProcess();

}  // namespace ft
