#include "runtime/collective/create.h"

#include <sched.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/gloo/gloo_communicator.h"
#include "runtime/collective/local/local_communicator.h"
#include "runtime/collective/nccl/create_nccl.h"
#include "runtime/collective/nccl/nccl_communicator.h"
#include "runtime/collective/nccl/single_rank.h"
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

// Who the ranks of a group are, for messages.
std::vector<std::string> Members(const Rendezvous& rendezvous, absl::Span<const int> ranks) {
  std::vector<std::string> members;
  for (const int rank : ranks) {
    const PeerInfo& peer = rendezvous.peers()[static_cast<size_t>(rank)];
    members.push_back(absl::StrCat("rank ", rank, " (", Whereabouts(peer), ")"));
  }
  return members;
}

// Where a rank of the run stands in the group; -1: it does not.
int RankIn(const CommunicatorGroup& group, int rank) {
  const auto found = std::find(group.ranks.begin(), group.ranks.end(), rank);
  return found == group.ranks.end() ? -1 : static_cast<int>(found - group.ranks.begin());
}

ShmOptions ShmOptionsFor(const Rendezvous& rendezvous, const CommunicatorGroup& group,
                         const CommunicatorOptions& options, std::string key) {
  ShmOptions shm;
  shm.key = std::move(key);
  shm.rank = RankIn(group, rendezvous.rank());
  shm.size = static_cast<int>(group.ranks.size());
  shm.timeout = options.timeout;
  shm.connect_timeout = rendezvous.timeout();
  shm.spin = SpinFor(rendezvous.world_size(), options);
  shm.members = Members(rendezvous, group.ranks);
  shm.interrupted = options.interrupted;
  return shm;
}

GlooOptions GlooOptionsFor(const Rendezvous& rendezvous, const CommunicatorGroup& group,
                           const CommunicatorOptions& options, std::string key) {
  GlooOptions gloo;
  gloo.key = std::move(key);
  gloo.rank = RankIn(group, rendezvous.rank());
  gloo.size = static_cast<int>(group.ranks.size());
  // Ranks of one host talk over the interface they found each other on, loopback perhaps; others need one
  // that is seen outside.
  gloo.address = rendezvous.one_host() ? rendezvous.self().address : rendezvous.self().external_address;
  gloo.timeout = options.timeout;
  gloo.connect_timeout = rendezvous.timeout();
  gloo.members = Members(rendezvous, group.ranks);
  gloo.interrupted = options.interrupted;
  return gloo;
}

absl::StatusOr<std::unique_ptr<Communicator>> Create(const Rendezvous& rendezvous,
                                                     const CommunicatorGroup& group,
                                                     CollectiveBackend backend,
                                                     const CommunicatorOptions& options, std::string key) {
  if (RankIn(group, rendezvous.rank()) < 0) {
    return absl::InternalError(absl::StrCat("rank ", rendezvous.rank(), " is none of a group of ranks ",
                                            absl::StrJoin(group.ranks, ", "), " that it is to talk to"));
  }
  if (group.ranks.size() == 1) return CreateLocalCommunicator();
  if (backend == CollectiveBackend::kShm) {
    return CreateShmCommunicator(rendezvous.store(),
                                 ShmOptionsFor(rendezvous, group, options, std::move(key)));
  }
  return CreateGlooCommunicator(rendezvous.store(),
                                GlooOptionsFor(rendezvous, group, options, std::move(key)));
}

CommunicatorGroup World(const Rendezvous& rendezvous) {
  CommunicatorGroup world;
  for (const PeerInfo& peer : rendezvous.peers()) world.ranks.push_back(peer.rank);
  return world;
}

// Whether ranks can map the memory of each other's GPUs: these are of one host, and not one for several
// ranks.
bool CanMap(const Rendezvous& rendezvous, const CommunicatorGroup& group) {
  const PeerInfo& first = rendezvous.peers()[static_cast<size_t>(group.ranks[0])];
  std::set<std::string> gpus;
  for (const int rank : group.ranks) {
    const PeerInfo& peer = rendezvous.peers()[static_cast<size_t>(rank)];
    const bool alike = peer.host_id == first.host_id && peer.gpu_page_bytes == first.gpu_page_bytes;
    if (!alike || peer.gpu_page_bytes == 0 || !gpus.insert(peer.gpu).second) return false;
  }
  return true;
}

// Communicators for the memory of GPUs.
absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> CreateForGpus(
    const Rendezvous& rendezvous, absl::Span<const CommunicatorGroup> groups,
    const CommunicatorOptions& options) {
  if (options.link.has_value())
    return absl::FailedPreconditionError("a link is emulated between CPUs only, not between GPUs");
  if (rendezvous.world_size() == 1) {
    std::vector<std::unique_ptr<Communicator>> made;
    for (size_t i = 0; i < groups.size(); ++i)
      made.push_back(nccl::CreateSingleRankCommunicator(*options.cuda));
    return made;
  }
  std::vector<nccl::NcclGroup> members;
  for (const CommunicatorGroup& group : groups) {
    members.push_back({.ranks = group.ranks, .can_map = CanMap(rendezvous, group), .gathers = group.gathers});
  }
  return nccl::CreateNcclCommunicators(members, {.cuda = *options.cuda,
                                                 .store = rendezvous.store(),
                                                 .rank = rendezvous.rank(),
                                                 .members = Members(rendezvous, World(rendezvous).ranks),
                                                 .timeout = options.timeout,
                                                 .connect_timeout = rendezvous.timeout(),
                                                 .interrupted = options.interrupted,
                                                 .deterministic = options.deterministic});
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
    case CollectiveBackend::kNccl:
      return "nccl";
  }
  return "?";
}

absl::StatusOr<CollectiveBackend> ParseCollectiveBackend(std::string_view name) {
  for (const auto backend : {CollectiveBackend::kAuto, CollectiveBackend::kLocal, CollectiveBackend::kShm,
                             CollectiveBackend::kGloo, CollectiveBackend::kNccl}) {
    if (name == Name(backend)) return backend;
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown collective backend '", std::string(name),
                                                 "': choose auto, local, shm, gloo or nccl"));
}

absl::StatusOr<CollectiveBackend> ResolveBackend(const Rendezvous& rendezvous, CollectiveBackend wanted,
                                                 bool cuda) {
  const bool alone = rendezvous.world_size() == 1;
  if (wanted == CollectiveBackend::kNccl && !cuda)
    return absl::FailedPreconditionError(
        "the nccl backend is for GPUs, this run computes on CPUs: choose auto");
  if (cuda && (wanted == CollectiveBackend::kShm || wanted == CollectiveBackend::kGloo)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the ", std::string(Name(wanted)),
                     " backend is for CPUs, this run computes on GPUs: choose "
                     "auto or nccl"));
  }
  if (wanted == CollectiveBackend::kAuto) {
    if (alone) return CollectiveBackend::kLocal;
    if (cuda) return CollectiveBackend::kNccl;
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
    const Rendezvous& rendezvous, absl::Span<const CommunicatorGroup> groups,
    const CommunicatorOptions& options) {
  FT_ASSIGN_OR_RETURN(const CollectiveBackend backend,
                      ResolveBackend(rendezvous, options.backend, options.cuda.has_value()));
  if (options.cuda.has_value()) return CreateForGpus(rendezvous, groups, options);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (const CommunicatorGroup& group : groups) {
    // Groups of one place in the list share no rank: the first one names them.
    std::string key =
        absl::StrCat("communicator/", communicators.size(), "/", group.ranks.empty() ? 0 : group.ranks[0]);
    FT_ASSIGN_OR_RETURN(auto made, Create(rendezvous, group, backend, options, std::move(key)));
    if (options.link.has_value()) made = EmulateLink(std::move(made), *options.link);
    communicators.push_back(std::move(made));
  }
  return communicators;
}

absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> CreateCommunicators(
    const Rendezvous& rendezvous, int count, const CommunicatorOptions& options) {
  return CreateCommunicators(
      rendezvous, std::vector<CommunicatorGroup>(static_cast<size_t>(count), World(rendezvous)), options);
}

absl::StatusOr<std::unique_ptr<Communicator>> CreateHostCommunicator(const Rendezvous& rendezvous,
                                                                     const CommunicatorOptions& options) {
  FT_ASSIGN_OR_RETURN(const CollectiveBackend backend, ResolveBackend(rendezvous, CollectiveBackend::kAuto));
  return Create(rendezvous, World(rendezvous), backend, options, "communicator/host");
}

size_t StagingBytes(CollectiveBackend backend, int ranks, bool deterministic) {
  if (ranks == 1) return 0;
  switch (backend) {
    case CollectiveBackend::kShm:
      return ShmStagingBytes();
    case CollectiveBackend::kGloo:
      return GlooStagingBytes();
    case CollectiveBackend::kNccl:
      return nccl::NcclStagingBytes(deterministic);
    case CollectiveBackend::kAuto:
    case CollectiveBackend::kLocal:
      break;
  }
  return 0;
}

}  // namespace ft
