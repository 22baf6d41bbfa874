// Collectives of ranks on several hosts, over TCP by Gloo. Gloo moves the bytes; the sums are ours
// (tree_sum.h), so that their bits are those of every other backend.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/collective/communicator.h"
#include "runtime/collective/rendezvous/store.h"

namespace ft {

struct GlooOptions {
  std::string key;  // in the store; each communicator needs its own
  int rank = 0;
  int size = 1;
  std::string address;  // numeric, of the interface to listen on; the others must reach it
  absl::Duration timeout = absl::Seconds(300);          // of a collective
  absl::Duration connect_timeout = absl::Seconds(300);  // of this call
  std::vector<std::string> members;                     // by rank, for messages: "rank 6 (pid 17 on node-a)"
  std::function<absl::Status()> interrupted;            // may be empty
};

// Connects each rank to each. Errors: Unavailable when a rank does not come.
absl::StatusOr<std::unique_ptr<Communicator>> CreateGlooCommunicator(Store* store,
                                                                     const GlooOptions& options);

// Bytes of staging of one rank and one communicator.
size_t GlooStagingBytes();

}  // namespace ft
