// ftexec --check: proves a job before it starts, on all of its ranks.
#pragma once

#include "absl/status/status.h"
#include "tools/ftexec/flags.h"
#include "tools/ftexec/process_guard.h"
#include "tools/ftexec/rank_device.h"

namespace ft {

// Does what a run does before step 0, and more: each thing whether or not another failed. Rank 0 prints one
// table of what all ranks found. Nothing is trained, nothing stays behind on disks. Errors, on all ranks: the
// code of the first check that failed, with what to say of it; no text where rank 0 says it all.
absl::Status CheckJob(const Flags& flags, const LaunchEnvironment& environment, const NcclSource& load_nccl,
                      ProcessGuard& guard);

// With --device=null: the plan alone, and what it is reckoned to want of the machine that it carries.
absl::Status CheckSimulated(const Flags& flags);

}  // namespace ft
