// TCP sockets as values: deadlines instead of blocking calls, Status instead of errno.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace ft {

// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { Reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void Reset();

 private:
  int fd_ = -1;
};

// "doing this failed: <what errno says>", as Internal.
absl::Status ErrnoStatus(absl::string_view doing);

// Milliseconds until `deadline` for poll(): rounded up, at least 0, at most an hour.
int PollMilliseconds(absl::Time deadline);

// All sockets made here are non-blocking, close-on-exec and without Nagle's delay.

// Resolves `host` and tries every address, once. Errors: Unavailable with the last reason.
absl::StatusOr<Fd> ConnectOnce(const std::string& host, uint16_t port, absl::Time deadline);

// Listens on all interfaces, IPv6 and IPv4 where the system has both. Port 0 takes a free one.
struct Listener {
  Fd fd;
  uint16_t port = 0;
};
absl::StatusOr<Listener> Listen(uint16_t port);

// Accepts one pending connection; an invalid Fd when there is none.
Fd Accept(int listener);

// Errors: Unavailable when the other side closed, DeadlineExceeded.
absl::Status SendAll(int fd, absl::string_view bytes, absl::Time deadline);
absl::Status ReceiveAll(int fd, void* data, size_t bytes, absl::Time deadline);

// Numeric addresses of the two ends of a connection, without port; IPv4-mapped ones are written as IPv4.
std::string LocalAddress(int fd);
std::string RemoteAddress(int fd);

bool IsLoopback(absl::string_view address);

// The numeric address that other hosts would see this one at: the one in front of the default route, else the
// first interface's that is up and not loopback; empty when this host has none.
std::string ExternalAddress();

}  // namespace ft
