// --device=null: a plan without computing.
#pragma once

#include "absl/status/status.h"
#include "tools/ftexec/flags.h"

namespace ft {

// Walks the plan as rank 0 of flags.world_size ranks on the null device and prints the simulated step time.
absl::Status Simulate(const Flags& flags);

}  // namespace ft
