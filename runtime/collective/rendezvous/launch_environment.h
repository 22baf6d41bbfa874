// Who am I in this run: what the launcher (torchrun, ftrun, a Kubernetes operator, a shell) said through the
// environment.
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

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

  std::string run_id = "none";  // TORCHELASTIC_RUN_ID
  int restart_count = 0;        // TORCHELASTIC_RESTART_COUNT
  std::string error_file;       // TORCHELASTIC_ERROR_FILE; empty: none wanted
};

// Returns the value of an environment variable, or null when it is not set.
using EnvironmentLookup = absl::FunctionRef<const char*(const char* name)>;

// Reads RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, MASTER_ADDR, MASTER_PORT and
// TORCHELASTIC_*. With none of RANK, WORLD_SIZE and MASTER_* set, it is a run of one rank, unless
// another launcher has visibly started more (CheckStartedAlone). Errors:
// InvalidArgument, one line that names the variable, its value and what to do.
absl::StatusOr<LaunchEnvironment> ParseLaunchEnvironment(EnvironmentLookup lookup);

// The same from this process's own environment.
absl::StatusOr<LaunchEnvironment> LaunchEnvironmentOfProcess();

}  // namespace ft
