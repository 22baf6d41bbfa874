// The arena of a CPU rank.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"

namespace ft {

// Zeroed pages, on a 2 MiB boundary so that the system can use huge ones, all of them present: touched by
// `num_threads` threads now rather than one by one in the first step. Errors: ResourceExhausted with the
// bytes wanted and available.
absl::StatusOr<std::unique_ptr<Memory>> AllocateCpuArena(uint64_t bytes, int num_threads);

}  // namespace ft
