// A run of this rank that trains nothing: --evaluate and --generate.
#pragma once

#include "absl/status/status.h"
#include "tools/ftexec/failure_report.h"
#include "tools/ftexec/flags.h"
#include "tools/ftexec/job.h"
#include "tools/ftexec/process_guard.h"
#include "tools/ftexec/rank_device.h"

namespace ft {

// As Train.
absl::Status Infer(const Flags& flags, Job& job, const NcclSource& load_nccl, ProcessGuard& guard,
                   FailureReport& report);

}  // namespace ft
