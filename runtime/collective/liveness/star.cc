#include "runtime/collective/liveness/star.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

constexpr char kKey[] = "liveness/hub";
constexpr absl::Duration kGreetingTimeout = absl::Seconds(5);

// Sent by a rank that connects, and returned to it: whoever answers at this address is this run's rank 0.
struct Greeting {
  uint64_t nonce = 0;
  uint32_t rank = 0;
};

uint64_t RandomNonce() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

// Room for what the watch sends to a process that is stopped (channel.h), however little the system gives a
// socket at first.
constexpr int kReceiveBuffer = 256 << 10;

// A host that vanishes sends nothing, not even an end of the connection; the kernel finds out. A stopped
// process's kernel answers.
void KeepAlive(int fd) {
  const auto set = [fd](int level, int name, int value) {
    setsockopt(fd, level, name, &value, sizeof(value));
  };
  set(SOL_SOCKET, SO_RCVBUF, kReceiveBuffer);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);  // ms; the same while something is on its way
}

absl::Status Send(int fd, const Greeting& greeting) {
  char bytes[12];
  std::memcpy(bytes, &greeting.nonce, 8);
  std::memcpy(bytes + 8, &greeting.rank, 4);
  return SendAll(fd, absl::string_view(bytes, sizeof(bytes)), absl::Now() + kGreetingTimeout);
}

absl::StatusOr<Greeting> Receive(int fd) {
  char bytes[12];
  FT_RETURN_IF_ERROR(ReceiveAll(fd, bytes, sizeof(bytes), absl::Now() + kGreetingTimeout));
  Greeting greeting;
  std::memcpy(&greeting.nonce, bytes, 8);
  std::memcpy(&greeting.rank, bytes + 8, 4);
  return greeting;
}

absl::Status MissingRanks(const std::vector<Fd>& connections) {
  std::vector<size_t> missing;
  for (size_t rank = 1; rank < connections.size(); ++rank) {
    if (!connections[rank].valid()) missing.push_back(rank);
  }
  return absl::UnavailableError(
      absl::StrCat("rank ", absl::StrJoin(missing, ", "), " did not connect to rank 0"));
}

absl::Status AcceptAll(const Listener& listener, uint64_t nonce, absl::Time deadline,
                       std::vector<Fd>* connections) {
  for (size_t missing = connections->size() - 1; missing > 0;) {
    if (absl::Now() >= deadline) return MissingRanks(*connections);
    pollfd entry{listener.fd.get(), POLLIN, 0};
    poll(&entry, 1, PollMilliseconds(deadline));
    Fd fd = Accept(listener.fd.get());
    if (!fd.valid()) continue;
    const auto greeting = Receive(fd.get());
    // Not one of ours: somebody who tries out ports.
    if (!greeting.ok() || greeting->nonce != nonce || greeting->rank == 0 ||
        greeting->rank >= connections->size())
      continue;
    if (!Send(fd.get(), *greeting).ok()) continue;
    KeepAlive(fd.get());
    missing -= (*connections)[greeting->rank].valid() ? 0 : 1;
    (*connections)[greeting->rank] = std::move(fd);
  }
  return absl::OkStatus();
}

absl::StatusOr<Fd> ConnectTo(const std::string& address, uint16_t port, const Greeting& greeting) {
  FT_ASSIGN_OR_RETURN(Fd fd, ConnectOnce(address, port, absl::Now() + kGreetingTimeout));
  FT_RETURN_IF_ERROR(Send(fd.get(), greeting));
  FT_ASSIGN_OR_RETURN(const Greeting answer, Receive(fd.get()));
  if (answer.nonce != greeting.nonce || answer.rank != greeting.rank)
    return absl::UnavailableError("somebody else answered");
  KeepAlive(fd.get());
  return fd;
}

// Where rank 0 may be found, the likeliest first.
std::vector<std::string> HubAddresses(const Rendezvous& rendezvous) {
  const PeerInfo& hub = rendezvous.peers()[0];
  std::vector<std::string> addresses;
  const auto add = [&addresses](const std::string& address) {
    if (!address.empty() && std::find(addresses.begin(), addresses.end(), address) == addresses.end()) {
      addresses.push_back(address);
    }
  };
  if (hub.host_id == rendezvous.self().host_id) add("127.0.0.1");
  add(hub.external_address);
  add(rendezvous.master_address());
  add(hub.address);
  return addresses;
}

absl::StatusOr<Fd> ConnectToHub(const Rendezvous& rendezvous, absl::Time deadline) {
  FT_ASSIGN_OR_RETURN(const std::string text, rendezvous.store()->Get(kKey, deadline));
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  uint32_t port = 0;
  Greeting greeting{0, static_cast<uint32_t>(rendezvous.rank())};
  if (words.size() != 2 || !absl::SimpleAtoi(words[0], &port) ||
      !absl::SimpleAtoi(words[1], &greeting.nonce)) {
    return absl::InternalError("the store holds something else than rank 0's port");
  }
  const std::vector<std::string> addresses = HubAddresses(rendezvous);
  std::string reasons;
  for (absl::Duration pause = absl::Milliseconds(20);;
       pause = std::min(pause * 2, absl::Duration(absl::Seconds(1)))) {
    reasons.clear();
    for (const std::string& address : addresses) {
      auto fd = ConnectTo(address, static_cast<uint16_t>(port), greeting);
      if (fd.ok()) return fd;
      absl::StrAppend(&reasons, reasons.empty() ? "" : "; ", address, ": ", fd.status().message());
    }
    if (absl::Now() + pause >= deadline) break;
    absl::SleepFor(pause);
  }
  return absl::UnavailableError(absl::StrCat("cannot connect to rank 0 (", Whereabouts(rendezvous.peers()[0]),
                                             ") at port ", port, ": ", reasons,
                                             "; all ports between the hosts have to be open"));
}

}  // namespace

absl::StatusOr<std::vector<Fd>> ConnectStar(const Rendezvous& rendezvous) {
  const absl::Time deadline = absl::Now() + rendezvous.timeout();
  std::vector<Fd> connections(static_cast<size_t>(rendezvous.world_size()));
  if (rendezvous.rank() > 0) {
    FT_ASSIGN_OR_RETURN(connections[0], ConnectToHub(rendezvous, deadline));
    return connections;
  }
  FT_ASSIGN_OR_RETURN(const Listener listener, Listen(0));
  const uint64_t nonce = RandomNonce();
  FT_RETURN_IF_ERROR(rendezvous.store()->Set(kKey, absl::StrCat(listener.port, " ", nonce)));
  FT_RETURN_IF_ERROR(AcceptAll(listener, nonce, deadline, &connections));
  return connections;
}

}  // namespace ft
