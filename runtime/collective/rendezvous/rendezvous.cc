#include "runtime/collective/rendezvous/rendezvous.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/net/socket.h"
#include "runtime/collective/rendezvous/host_identity.h"
#include "runtime/collective/rendezvous/meeting.h"
#include "runtime/collective/rendezvous/prefix_store.h"
#include "runtime/collective/rendezvous/tcp_store_client.h"
#include "runtime/collective/rendezvous/tcp_store_server.h"

namespace ft {
namespace {

constexpr absl::Duration kFarewellPatience = absl::Seconds(5);

PeerInfo Self(const LaunchEnvironment& environment, const RendezvousOptions& options) {
  PeerInfo self;
  self.rank = environment.rank;
  self.hostname = Hostname();
  self.host_id = HostIdentity();
  self.pid = getpid();
  self.fingerprint = options.fingerprint;
  self.label = options.label;
  self.restart_count = environment.restart_count;
  self.instruction_set = options.instruction_set;
  self.machine = MachineIdentity();
  self.gpu = options.gpu;
  self.gpu_page_bytes = options.gpu_page_bytes;
  return self;
}

// Where the address of the store was not given but follows from a launcher's variables: what to do about it.
std::string AboutDerivedAddress(const LaunchEnvironment& environment) {
  if (environment.launcher.empty()) return "";
  return absl::StrCat("; where they are not set, MASTER_ADDR and MASTER_PORT follow from what ",
                      environment.launcher, " sets: set others on every rank");
}

std::string FarewellKey(int rank) { return absl::StrCat("met/", rank); }

}  // namespace

Rendezvous::Rendezvous() = default;

Rendezvous::~Rendezvous() {
  // Whoever has not read the roster yet would find no store. Nothing to be done when they do not come.
  if (server_ != nullptr && store_ != nullptr) {
    store_->Wait(farewells_, absl::Now() + kFarewellPatience).IgnoreError();
  }
}

bool Rendezvous::one_host() const {
  return std::all_of(peers_.begin(), peers_.end(),
                     [&](const PeerInfo& peer) { return peer.host_id == peers_[0].host_id; });
}

absl::StatusOr<std::unique_ptr<Rendezvous>> Rendezvous::Join(const LaunchEnvironment& environment,
                                                             const RendezvousOptions& options) {
  std::unique_ptr<Rendezvous> rendezvous(new Rendezvous);
  PeerInfo self = Self(environment, options);
  rendezvous->rank_ = environment.rank;
  rendezvous->timeout_ = options.timeout;
  if (environment.world_size == 1) {
    rendezvous->peers_.push_back(std::move(self));
    return rendezvous;
  }
  if (environment.rank == 0 && !environment.agent_store) {
    auto server = TcpStoreServer::Start(environment.master_port);
    if (!server.ok()) {
      return absl::Status(server.status().code(),
                          absl::StrCat("rank 0 cannot serve the store: ", server.status().message(),
                                       " (MASTER_PORT=", environment.master_port,
                                       "); is another run using it, or another process RANK=0?",
                                       AboutDerivedAddress(environment)));
    }
    rendezvous->server_ = *std::move(server);
  }
  auto connected = TcpStoreClient::Connect(environment.master_addr, environment.master_port,
                                           absl::Now() + options.timeout);
  if (!connected.ok()) {
    return absl::Status(connected.status().code(),
                        absl::StrCat(connected.status().message(), AboutDerivedAddress(environment)));
  }
  std::unique_ptr<TcpStoreClient> client = *std::move(connected);
  rendezvous->master_address_ = client->remote_address();
  self.address = client->local_address();
  self.external_address = IsLoopback(self.address) ? ExternalAddress() : self.address;
  rendezvous->connection_ = std::move(client);
  const std::string base = absl::StrCat("ftexec/", environment.run_id);
  PrefixStore meeting_place(rendezvous->connection_.get(), base);
  FT_ASSIGN_OR_RETURN(Roster roster,
                      environment.rank == 0
                          ? LeadMeeting(&meeting_place, self, environment.world_size, options.timeout)
                          : FollowMeeting(&meeting_place, self, options.timeout));
  rendezvous->generation_ = roster.generation;
  rendezvous->store_ = std::make_unique<PrefixStore>(rendezvous->connection_.get(),
                                                     absl::StrCat(base, "/", roster.generation));
  FT_RETURN_IF_ERROR(rendezvous->store_->Set(FarewellKey(environment.rank), ""));
  for (const PeerInfo& peer : roster.peers) rendezvous->farewells_.push_back(FarewellKey(peer.rank));
  FT_RETURN_IF_ERROR(roster.verdict);
  if (static_cast<int>(roster.peers.size()) != environment.world_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank 0 has WORLD_SIZE=", roster.peers.size(), ", rank ", environment.rank,
                     " has WORLD_SIZE=", environment.world_size, ": give every process the same WORLD_SIZE"));
  }
  rendezvous->peers_ = std::move(roster.peers);
  return rendezvous;
}

}  // namespace ft
