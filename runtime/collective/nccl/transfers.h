// The sends and receives of one group.
#pragma once

#include "runtime/collective/nccl/nccl_api.h"

namespace ft::nccl {

// The first error stays.
class Transfers {
 public:
  Transfers(NcclApi& api, CommHandle comm, void* stream) : api_(api), comm_(comm), stream_(stream) {}

  void Send(const void* src, size_t bytes, int peer) {
    if (result_ == kSuccess) result_ = Settled(api_.Send(src, bytes, kInt8, peer, comm_, stream_));
  }
  void Receive(void* dst, size_t bytes, int peer) {
    if (result_ == kSuccess) result_ = Settled(api_.Recv(dst, bytes, kInt8, peer, comm_, stream_));
  }
  Result result() const { return result_; }

 private:
  static Result Settled(Result result) { return result == kInProgress ? kSuccess : result; }

  NcclApi& api_;
  const CommHandle comm_;
  void* const stream_;
  Result result_ = kSuccess;
};

}  // namespace ft::nccl
