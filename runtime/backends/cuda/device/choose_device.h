// Which GPU a rank computes on, or why it cannot.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/backends/cuda/driver.h"

namespace ft::cuda {

struct ChosenDevice {
  int number = 0;
  DeviceProperties properties;
};

// Rank i of a host gets device i; with `may_share` and fewer devices than ranks, device i modulo their
// number. An only device is taken by any rank: launchers show each one its own, and whether two ranks got the
// same is seen when they meet. Makes it the calling thread's. Errors: FailedPrecondition, one line for the
// user, without a driver or a device, with several of them and yet too few, or with one of compute capability
// below 8.0 (which lacks bf16).
absl::StatusOr<ChosenDevice> ChooseDevice(Driver& driver, int local_rank, bool may_share);

}  // namespace ft::cuda
