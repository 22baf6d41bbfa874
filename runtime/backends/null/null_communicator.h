// Stands for ranks that do not exist.
#pragma once

#include "runtime/collective/communicator.h"

namespace ft {

// Rank `rank` of `size`; every call succeeds at once and moves nothing.
class NullCommunicator final : public Communicator {
 public:
  NullCommunicator(int rank, int size) : rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  absl::Status AllGather(absl::Span<const GatherPart>, const CollectiveLabel&) override {
    return absl::OkStatus();
  }
  absl::Status ReduceScatter(absl::Span<const ReducePart>, const CollectiveLabel&) override {
    return absl::OkStatus();
  }
  absl::Status AllReduce(absl::Span<const ReducePart>, const CollectiveLabel&) override {
    return absl::OkStatus();
  }
  absl::Status AllToAll(const AllToAllParts&, const CollectiveLabel&) override { return absl::OkStatus(); }
  absl::Status Broadcast(void*, size_t, int, const CollectiveLabel&) override { return absl::OkStatus(); }
  absl::Status Barrier(const CollectiveLabel&) override { return absl::OkStatus(); }
  void Abort(absl::Status) override {}
  size_t staging_bytes() const override { return 0; }

 private:
  const int rank_;
  const int size_;
};

}  // namespace ft
