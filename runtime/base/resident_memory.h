// How much memory of the machine this process holds.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

namespace ft {

// Bytes, as /proc/self/status has them: pages of its own, of files it has mapped, and of memory it shares.
struct ResidentMemory {
  uint64_t now = 0;
  uint64_t peak = 0;  // since the process began
};

// Allocates nothing unless it fails. Errors: NotFound where the system does not say.
absl::StatusOr<ResidentMemory> ResidentMemoryOfProcess();

}  // namespace ft
