// Makes the communicators of a run: which transport, how many, how much memory.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/collective/communicator.h"
#include "runtime/collective/rendezvous/rendezvous.h"

namespace ft {

enum class CollectiveBackend {
  kAuto,   // local for one rank, shm when all ranks share a host, gloo otherwise
  kLocal,  // one rank
  kShm,    // POSIX shared memory on one host
  kGloo,   // TCP
};

std::string_view Name(CollectiveBackend backend);
// "auto", "local", "shm" or "gloo". Errors: InvalidArgument.
absl::StatusOr<CollectiveBackend> ParseCollectiveBackend(std::string_view name);

struct CommunicatorOptions {
  CollectiveBackend backend = CollectiveBackend::kAuto;
  // How long a collective waits for the other ranks.
  absl::Duration timeout = absl::Seconds(300);
  // Threads that compute in each rank; decides whether a waiting rank may spin for some microseconds.
  int threads_per_rank = 1;
  // Asked several times a second while communicators are made; an error stops it. Give it
  // PeerMonitor::status.
  std::function<absl::Status()> interrupted;
};

// The backend that kAuto stands for in this run, or `wanted` itself. Errors: FailedPrecondition when `wanted`
// cannot work here.
absl::StatusOr<CollectiveBackend> ResolveBackend(const Rendezvous& rendezvous, CollectiveBackend wanted);

// Makes `count` communicators over all ranks, one for each stream that communicates; every rank has to call
// it with the same arguments, and once per Rendezvous. Errors: FailedPrecondition for a backend that cannot
// work here, ResourceExhausted when /dev/shm is too small, Unavailable for a missing peer.
absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> CreateCommunicators(
    const Rendezvous& rendezvous, int count, const CommunicatorOptions& options);

// Communicators of a training run: one for the stream `gather`, one for `reduce`.
inline constexpr int kCommunicatorsOfRun = 2;

// Bytes that each rank holds for staging with `count` communicators, all together: the sum of their
// staging_bytes(). `backend` must not be kAuto.
size_t StagingBytes(CollectiveBackend backend, int world_size, int count);

}  // namespace ft
