// Makes the NCCL communicators of a run.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/collective/communicator.h"
#include "runtime/collective/nccl/device_side.h"
#include "runtime/collective/rendezvous/store.h"

namespace ft::nccl {

struct NcclOptions {
  CudaSide cuda;
  Store* store = nullptr;
  int rank = 0;                      // in the run
  std::vector<std::string> members;  // all ranks of the run, for messages: "rank 6 (pid 17 on node-a)"
  absl::Duration timeout = absl::Seconds(300);          // of a collective
  absl::Duration connect_timeout = absl::Seconds(300);  // of this call
  std::function<absl::Status()> interrupted;            // may be empty
  bool deterministic = false;
  size_t staging_bytes = 0;  // of each communicator; 0: NcclStagingBytes
};

struct NcclGroup {
  std::vector<int> ranks;  // of the run
  bool can_map = false;    // the memory of each other's GPUs
  bool gathers = false;    // and does not sum
};

// Makes one communicator for each group: one over all ranks by a unique id that
// goes through the store, the others split off from it. Every rank has to call it with as many groups, this
// rank in each of its groups; the groups that ranks give at one place of the list are equal or share no rank.
// Errors: FailedPrecondition without a library, Unavailable when ranks do not come (they are named), that of
// `interrupted`, NCCL's own.
absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> CreateNcclCommunicators(
    absl::Span<const NcclGroup> groups, const NcclOptions& options);

}  // namespace ft::nccl
