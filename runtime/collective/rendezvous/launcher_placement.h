// Where a rank stands and how it finds the others, from what its launcher says.
#pragma once

#include "absl/status/status.h"
#include "runtime/collective/rendezvous/launch_environment.h"
#include "runtime/collective/rendezvous/launchers.h"

namespace ft {

// The port of a run's store where MASTER_PORT does not say it: one of kStorePorts from kFirstStorePort, by
// the number of the job; kDefaultStorePort where the launcher gives its jobs no name.
inline constexpr int kFirstStorePort = 20000;
inline constexpr int kStorePorts = 8000;
inline constexpr int kDefaultStorePort = 29500;

// All of LaunchEnvironment for a process that `started` describes. LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK,
// MASTER_ADDR and MASTER_PORT count where they are set; WORLD_SIZE has to agree. Errors: InvalidArgument, one
// line that names the variable and what to set.
absl::StatusOr<LaunchEnvironment> PlaceRank(const StartedBy& started, EnvironmentLookup lookup,
                                            PeerProcess peer_process);

}  // namespace ft
