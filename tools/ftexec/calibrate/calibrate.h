// ftexec --calibrate: measures what runtime/cost reckons with, by the kernels, devices and communicators that
// train.
#pragma once

#include "absl/status/status.h"
#include "runtime/collective/rendezvous/launch_environment.h"
#include "tools/ftexec/flags.h"
#include "tools/ftexec/process_guard.h"
#include "tools/ftexec/rank_device.h"

namespace ft {

// Of the machine, or with a plan of its kernels; rank 0 writes the file. Errors: one line about plan, device,
// ranks or file.
absl::Status Calibrate(const Flags& flags, const LaunchEnvironment& environment, const NcclSource& load_nccl,
                       ProcessGuard& guard);

}  // namespace ft
