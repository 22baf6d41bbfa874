// Collectives of GPUs, through NCCL, enqueued on the stream that owns the communicator.
//
// Calls return when the work is on the stream, and do nothing else there: the stream may be one whose work is
// being captured. What goes wrong later is found by the watchdog, which ends the communicator and tells the
// owner of the stream.
//
// Sums over ranks come in two ways. Fast: NCCL's, in the order that its algorithm has on this machine, 16-bit
// types in its own precision, which is theirs at every hop. Deterministic: ranks exchange
// their summands and add them in the order of tree_sum.h, so that results have the same bits on any number of
// machines, for the price of more traffic and of staging memory. Integers are exact either way.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/collective/communicator.h"
#include "runtime/collective/nccl/device_side.h"
#include "runtime/collective/nccl/nccl_handle.h"
#include "runtime/collective/nccl/nccl_watchdog.h"
#include "runtime/collective/nccl/stall_detector.h"

namespace ft::nccl {

struct NcclCommunicatorOptions {
  int rank = 0;  // in the group
  int size = 2;
  bool deterministic = false;
  size_t staging_bytes = 0;
  bool windows = false;                                 // WindowsWork
  absl::Duration connect_timeout = absl::Seconds(300);  // of windows
  std::function<absl::Status()> interrupted = {};       // of windows; may be empty
  CudaSide cuda;
  StallDetector::Options stall;
  std::shared_ptr<NcclWatchdog> watchdog;
};

// Errors: ResourceExhausted without memory for staging; InvalidArgument for more ranks than the deterministic
// mode knows to add.
absl::StatusOr<std::unique_ptr<Communicator>> CreateNcclCommunicator(std::unique_ptr<NcclHandle> handle,
                                                                     NcclCommunicatorOptions options);

// Device memory of a communicator of several ranks.
size_t NcclStagingBytes(bool deterministic);

}  // namespace ft::nccl
