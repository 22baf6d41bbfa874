// A server that speaks PyTorch's TCPStore protocol: for rank 0 when no agent serves the store, and for ftrun.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace ft {

// One thread, one poll loop. A client that breaks the protocol or its limits is disconnected.
class TcpStoreServer {
 public:
  // Port 0 takes a free one. Errors: AlreadyExists when the port is in use.
  static absl::StatusOr<std::unique_ptr<TcpStoreServer>> Start(uint16_t port);
  // Closes all connections.
  ~TcpStoreServer();

  uint16_t port() const;

 private:
  class Impl;
  explicit TcpStoreServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ft
