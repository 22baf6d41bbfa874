// A client of PyTorch's TCPStore: of torchrun's agent, of ftrun, or of rank 0's own server.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "runtime/collective/net/socket.h"
#include "runtime/collective/rendezvous/store.h"

namespace ft {

// Callable from any thread, one request at a time: a waiting call holds up the others.
class TcpStoreClient : public Store {
 public:
  // Retries refused connections, unknown names and the like with growing pauses until `deadline`. Errors:
  // Unavailable.
  static absl::StatusOr<std::unique_ptr<TcpStoreClient>> Connect(const std::string& host, uint16_t port,
                                                                 absl::Time deadline);

  absl::Status Set(absl::string_view key, absl::string_view value) override;
  absl::StatusOr<std::string> Get(absl::string_view key, absl::Time deadline) override;
  absl::StatusOr<int64_t> Add(absl::string_view key, int64_t delta) override;
  absl::Status Wait(absl::Span<const std::string> keys, absl::Time deadline) override;
  absl::StatusOr<bool> Check(absl::Span<const std::string> keys) override;

  // Numeric addresses of this connection's two ends.
  std::string local_address() const;
  std::string remote_address() const;

 private:
  TcpStoreClient(Fd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}

  absl::Status Handshake(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Send(const std::string& bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Receive(void* data, size_t bytes, absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status WaitLocked(absl::Span<const std::string> keys, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CancelWait() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // After an error half a message may be under way: the connection is of no use any more.
  absl::Status Broken(const absl::Status& error) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  Fd fd_;
  const std::string name_;  // "host:port"
};

}  // namespace ft
