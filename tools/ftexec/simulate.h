// --device=null: a plan without computing.
#pragma once

#include "absl/status/status.h"
#include "tools/ftexec/flags.h"

namespace ft {

// Walks the plan as rank 0 of flags.world_size ranks on the null device and prints the simulated step time,
// which is that of `ftc explain --schedule`: on the target that the plan was compiled for.
absl::Status Simulate(const Flags& flags);

}  // namespace ft
