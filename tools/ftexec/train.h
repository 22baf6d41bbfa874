// A training run of this rank, from the meeting of the ranks to the last file written.
#pragma once

#include "absl/status/status.h"
#include "tools/ftexec/failure_report.h"
#include "tools/ftexec/flags.h"
#include "tools/ftexec/job.h"
#include "tools/ftexec/process_guard.h"
#include "tools/ftexec/rank_device.h"

namespace ft {

// `report` learns what the run is at, and is written when it fails. Errors: whatever ended the run, to be
// printed after the rank's name.
absl::Status Train(const Flags& flags, Job& job, const NcclSource& load_nccl, ProcessGuard& guard,
                   FailureReport& report);

}  // namespace ft
