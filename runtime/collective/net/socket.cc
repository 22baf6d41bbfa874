#include "runtime/collective/net/socket.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

void SetNoDelay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// Waits until `fd` is ready for `events` (or in error, which the next call on it reports).
absl::Status WaitReady(int fd, short events, absl::Time deadline) {
  for (;;) {
    pollfd entry{fd, events, 0};
    const int ready = poll(&entry, 1, PollMilliseconds(deadline));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return ErrnoStatus("poll");
    if (ready == 0 && absl::Now() >= deadline) return absl::DeadlineExceededError("timed out");
  }
}

absl::StatusOr<Fd> ConnectAddress(const addrinfo& address, absl::Time deadline) {
  Fd fd(socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol));
  if (!fd.valid()) return ErrnoStatus("socket");
  SetNoDelay(fd.get());
  if (connect(fd.get(), address.ai_addr, address.ai_addrlen) != 0 && errno != EINPROGRESS) {
    return absl::UnavailableError(std::strerror(errno));
  }
  if (!WaitReady(fd.get(), POLLOUT, deadline).ok()) return absl::UnavailableError("Connection timed out");
  int error = 0;
  socklen_t length = sizeof(error);
  getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) return absl::UnavailableError(std::strerror(error));
  return fd;
}

std::string AddressText(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof(text));
  } else if (address->sa_family == AF_INET6) {
    const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&v6)) {
      inet_ntop(AF_INET, v6.s6_addr + 12, text, sizeof(text));
    } else {
      inet_ntop(AF_INET6, &v6, text, sizeof(text));
    }
  }
  return text;
}

absl::StatusOr<Listener> ListenFamily(int family, uint16_t port) {
  Fd fd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus("socket");
  const int on = 1, off = 0;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_storage storage{};
  socklen_t length = 0;
  if (family == AF_INET6) {
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage);
    *v6 = {};
    v6->sin6_family = AF_INET6;
    v6->sin6_addr = in6addr_any;
    v6->sin6_port = htons(port);
    length = sizeof(*v6);
  } else {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&storage);
    v4->sin_family = AF_INET;
    v4->sin_addr.s_addr = htonl(INADDR_ANY);
    v4->sin_port = htons(port);
    length = sizeof(*v4);
  }
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  const std::string doing = absl::StrCat("listening on TCP port ", port);
  if (bind(fd.get(), address, length) != 0) {
    if (errno == EADDRINUSE)
      return absl::AlreadyExistsError(absl::StrCat(doing, " failed: the port is in use"));
    return ErrnoStatus(doing);
  }
  if (listen(fd.get(), SOMAXCONN) != 0) return ErrnoStatus(doing);
  if (getsockname(fd.get(), address, &length) != 0) return ErrnoStatus("getsockname");
  const uint16_t bound = family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port
                                            : reinterpret_cast<sockaddr_in*>(&storage)->sin_port;
  return Listener{std::move(fd), ntohs(bound)};
}

// Connecting a datagram socket sends nothing; it asks the routing table. The address is one reserved for
// documentation.
std::string DefaultRouteAddress() {
  Fd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in target{};
  target.sin_family = AF_INET;
  target.sin_port = htons(9);
  inet_pton(AF_INET, "192.0.2.1", &target.sin_addr);
  if (!fd.valid() || connect(fd.get(), reinterpret_cast<sockaddr*>(&target), sizeof(target)) != 0) return "";
  return LocalAddress(fd.get());
}

}  // namespace

void Fd::Reset() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

absl::Status ErrnoStatus(absl::string_view doing) {
  return absl::InternalError(absl::StrCat(doing, " failed: ", std::strerror(errno)));
}

int PollMilliseconds(absl::Time deadline) {
  const absl::Duration left = std::clamp(deadline - absl::Now(), absl::ZeroDuration(), absl::Hours(1));
  return static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))));
}

absl::StatusOr<Fd> ConnectOnce(const std::string& host, uint16_t port, absl::Time deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found); error != 0) {
    return absl::UnavailableError(gai_strerror(error));
  }
  absl::Status last = absl::UnavailableError("the name has no address");
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    // One silent address must not use up the time of the others.
    auto fd = ConnectAddress(*address, std::min(deadline, absl::Now() + absl::Seconds(10)));
    if (fd.ok()) {
      freeaddrinfo(found);
      return fd;
    }
    last = fd.status();
  }
  freeaddrinfo(found);
  return last;
}

absl::StatusOr<Listener> Listen(uint16_t port) {
  auto listener = ListenFamily(AF_INET6, port);
  if (listener.ok() || absl::IsAlreadyExists(listener.status())) return listener;
  return ListenFamily(AF_INET, port);
}

Fd Accept(int listener) {
  Fd fd(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd.valid()) SetNoDelay(fd.get());
  return fd;
}

absl::Status SendAll(int fd, absl::string_view bytes, absl::Time deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      FT_RETURN_IF_ERROR(WaitReady(fd, POLLOUT, deadline));
    } else if (errno != EINTR) {
      return absl::UnavailableError(std::strerror(errno));
    }
  }
  return absl::OkStatus();
}

absl::Status ReceiveAll(int fd, void* data, size_t bytes, absl::Time deadline) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t received = recv(fd, at, bytes, 0);
    if (received > 0) {
      at += received;
      bytes -= static_cast<size_t>(received);
    } else if (received == 0) {
      return absl::UnavailableError("the other side closed the connection");
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      FT_RETURN_IF_ERROR(WaitReady(fd, POLLIN, deadline));
    } else if (errno != EINTR) {
      return absl::UnavailableError(std::strerror(errno));
    }
  }
  return absl::OkStatus();
}

std::string LocalAddress(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  return AddressText(reinterpret_cast<sockaddr*>(&address));
}

std::string RemoteAddress(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  getpeername(fd, reinterpret_cast<sockaddr*>(&address), &length);
  return AddressText(reinterpret_cast<sockaddr*>(&address));
}

bool IsLoopback(absl::string_view address) { return address == "::1" || absl::StartsWith(address, "127."); }

std::string ExternalAddress() {
  const std::string routed = DefaultRouteAddress();
  if (!routed.empty()) return routed;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return "";
  std::string first;
  for (const ifaddrs* entry = list; entry != nullptr && first.empty(); entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    std::string text = AddressText(entry->ifa_addr);
    if (!IsLoopback(text) && !absl::StartsWith(text, "fe80:")) first = std::move(text);
  }
  freeifaddrs(list);
  return first;
}

}  // namespace ft
