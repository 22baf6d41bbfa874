// Collectives of ranks on one host, through shared memory.
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

struct ShmOptions {
  std::string key;  // in the store; each communicator needs its own
  int rank = 0;
  int size = 1;
  absl::Duration timeout = absl::Seconds(300);          // of a collective
  absl::Duration connect_timeout = absl::Seconds(300);  // of this call
  absl::Duration spin;                                  // how long a wait may spin before it sleeps
  std::vector<std::string> members;                     // by rank, for messages: "rank 6 (pid 17 on node-a)"
  std::function<absl::Status()> interrupted;            // may be empty
};

// Errors: those of SharedSegment::Create.
absl::StatusOr<std::unique_ptr<Communicator>> CreateShmCommunicator(Store* store, const ShmOptions& options);

// Bytes of staging of one rank and one communicator.
size_t ShmStagingBytes();

}  // namespace ft
