// Makes the communicators of a run: which transport, how many, how much memory.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/collective/communicator.h"
#include "runtime/collective/emulated_link.h"
#include "runtime/collective/nccl/device_side.h"
#include "runtime/collective/rendezvous/rendezvous.h"

namespace ft {

enum class CollectiveBackend {
  // local for one rank; for GPUs nccl; else shm when all ranks share a host, gloo otherwise.
  kAuto,
  kLocal,  // one rank
  kShm,    // POSIX shared memory on one host
  kGloo,   // TCP
  kNccl,   // between GPUs
};

std::string_view Name(CollectiveBackend backend);
// "auto", "local", "shm", "gloo" or "nccl". Errors: InvalidArgument.
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
  // Makes collectives take as long as over this link; nullopt: as long as they take.
  std::optional<EmulatedLink> link;
  // The GPU whose memory collectives work on; nullopt: they work on the host's.
  std::optional<CudaSide> cuda;
  // Whether sums over ranks on GPUs are in the order of ranks; those on hosts always are.
  bool deterministic = false;
};

// The backend that kAuto stands for in this run, or `wanted` itself. Errors: FailedPrecondition when `wanted`
// cannot work here. `cuda`: collectives work on the memory of GPUs.
absl::StatusOr<CollectiveBackend> ResolveBackend(const Rendezvous& rendezvous, CollectiveBackend wanted,
                                                 bool cuda = false);

// Ranks of the run, ascending, that talk to each other.
struct CommunicatorGroup {
  std::vector<int> ranks;
  bool gathers = false;  // and does not sum
};

// Makes one communicator for each group. Every rank has to call it with as many groups, once per Rendezvous,
// this rank in each of its groups; the groups that ranks give at one place of the list are equal or share no
// rank. Errors: FailedPrecondition for a backend that cannot work here, ResourceExhausted when /dev/shm is
// too small or a GPU's memory, Unavailable for a missing peer.
absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> CreateCommunicators(
    const Rendezvous& rendezvous, absl::Span<const CommunicatorGroup> groups,
    const CommunicatorOptions& options);

// `count` communicators over all ranks.
absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> CreateCommunicators(
    const Rendezvous& rendezvous, int count, const CommunicatorOptions& options);

// One over all ranks for the host's memory, beside those of GPUs: as kAuto makes it. Once per Rendezvous.
absl::StatusOr<std::unique_ptr<Communicator>> CreateHostCommunicator(const Rendezvous& rendezvous,
                                                                     const CommunicatorOptions& options);

// staging_bytes() of a communicator over so many ranks; 0 for one. `backend` must not be kAuto.
size_t StagingBytes(CollectiveBackend backend, int ranks, bool deterministic = false);

}  // namespace ft
