// Whether the system has room for the threads of a rank.
#pragma once

#include "absl/status/status.h"
#include "tools/ftexec/job.h"
#include "tools/ftexec/rank_device.h"

namespace ft {

// Before the ranks meet. Errors: those of ProbeThreads, ProbeProcesses and CheckAddressSpace.
absl::Status ProbeTeam(const Job& job, const RankDevice& device);

}  // namespace ft
