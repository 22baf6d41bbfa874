#include "runtime/collective/create.h"

#include <sched.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/gloo/gloo_communicator.h"
#include "runtime/collective/local/local_communicator.h"
#include "runtime/collective/shm/shm_communicator.h"

namespace ft {
namespace {

constexpr absl::Duration kSpin = absl::Microseconds(30);

// Spinning only pays when every rank's threads, the waiting one included, have a core of their own.
absl::Duration SpinFor(int ranks_here, const CommunicatorOptions& options) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return absl::ZeroDuration();
  return ranks_here * (options.threads_per_rank + 1) <= CPU_COUNT(&allowed) ? kSpin : absl::ZeroDuration();
}

std::vector<std::string> People(const Rendezvous& rendezvous) {
  std::vector<std::string> people;
  for (const PeerInfo& peer : rendezvous.peers()) people.push_back(Whereabouts(peer));
  return people;
}

ShmOptions ShmOptionsFor(const Rendezvous& rendezvous, const CommunicatorOptions& options, std::string key) {
  ShmOptions shm;
  shm.key = std::move(key);
  shm.rank = rendezvous.rank();
  shm.size = rendezvous.world_size();
  shm.timeout = options.timeout;
  shm.connect_timeout = rendezvous.timeout();
  shm.spin = SpinFor(rendezvous.world_size(), options);
  shm.people = People(rendezvous);
  shm.interrupted = options.interrupted;
  return shm;
}

GlooOptions GlooOptionsFor(const Rendezvous& rendezvous, const CommunicatorOptions& options,
                           std::string key) {
  GlooOptions gloo;
  gloo.key = std::move(key);
  gloo.rank = rendezvous.rank();
  gloo.size = rendezvous.world_size();
  // Ranks of one host talk over the interface they found each other on, loopback perhaps; others need one
  // that is seen outside.
  gloo.address = rendezvous.one_host() ? rendezvous.self().address : rendezvous.self().external_address;
  gloo.timeout = options.timeout;
  gloo.connect_timeout = rendezvous.timeout();
  gloo.people = People(rendezvous);
  gloo.interrupted = options.interrupted;
  return gloo;
}

}  // namespace

std::string_view Name(CollectiveBackend backend) {
  switch (backend) {
    case CollectiveBackend::kAuto:
      return "auto";
    case CollectiveBackend::kLocal:
      return "local";
    case CollectiveBackend::kShm:
      return "shm";
    case CollectiveBackend::kGloo:
      return "gloo";
  }
  return "?";
}

absl::StatusOr<CollectiveBackend> ParseCollectiveBackend(std::string_view name) {
  for (const auto backend : {CollectiveBackend::kAuto, CollectiveBackend::kLocal, CollectiveBackend::kShm,
                             CollectiveBackend::kGloo}) {
    if (name == Name(backend)) return backend;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown collective backend '", std::string(name), "': choose auto, local, shm or gloo"));
}

absl::StatusOr<CollectiveBackend> ResolveBackend(const Rendezvous& rendezvous, CollectiveBackend wanted) {
  const bool alone = rendezvous.world_size() == 1;
  if (wanted == CollectiveBackend::kAuto) {
    if (alone) return CollectiveBackend::kLocal;
    return rendezvous.one_host() ? CollectiveBackend::kShm : CollectiveBackend::kGloo;
  }
  if (alone) return CollectiveBackend::kLocal;
  if (wanted == CollectiveBackend::kLocal) {
    return absl::FailedPreconditionError(absl::StrCat("the local backend is for one rank, this run has ",
                                                      rendezvous.world_size(), ": choose auto"));
  }
  if (wanted == CollectiveBackend::kShm && !rendezvous.one_host()) {
    return absl::FailedPreconditionError(
        "the shm backend needs all ranks on one host with one /dev/shm, this run has several: choose auto or "
        "gloo");
  }
  return wanted;
}

absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> CreateCommunicators(
    const Rendezvous& rendezvous, int count, const CommunicatorOptions& options) {
  FT_ASSIGN_OR_RETURN(const CollectiveBackend backend, ResolveBackend(rendezvous, options.backend));
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int i = 0; i < count; ++i) {
    const std::string key = absl::StrCat("communicator/", i);
    if (backend == CollectiveBackend::kLocal) {
      communicators.push_back(CreateLocalCommunicator());
    } else if (backend == CollectiveBackend::kShm) {
      FT_ASSIGN_OR_RETURN(auto made,
                          CreateShmCommunicator(rendezvous.store(), ShmOptionsFor(rendezvous, options, key)));
      communicators.push_back(std::move(made));
    } else {
      FT_ASSIGN_OR_RETURN(
          auto made, CreateGlooCommunicator(rendezvous.store(), GlooOptionsFor(rendezvous, options, key)));
      communicators.push_back(std::move(made));
    }
  }
  return communicators;
}

size_t StagingBytes(CollectiveBackend backend, int world_size, int count) {
  if (world_size == 1) return 0;
  switch (backend) {
    case CollectiveBackend::kShm:
      return static_cast<size_t>(count) * ShmStagingBytes();
    case CollectiveBackend::kGloo:
      return static_cast<size_t>(count) * GlooStagingBytes();
    case CollectiveBackend::kAuto:
    case CollectiveBackend::kLocal:
      break;
  }
  return 0;
}

}  // namespace ft
