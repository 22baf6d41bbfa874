// GPUs for tests of collectives: the host's memory and threads (HostDriver), the project's own device code
// compiled for the host, and the host's NCCL. One for all ranks, which are threads of the process.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/first_failure.h"
#include "runtime/collective/communicator.h"
#include "runtime/collective/nccl/device_side.h"
#include "runtime/device/device.h"
#include "test/doubles/nccl/host_driver.h"
#include "test/doubles/nccl/host_nccl.h"

namespace ft::testing {

// What a stream is at, marked on the stream itself as CUDA streams do.
class Marks {
 public:
  void Begin(HostStream& stream, const CommandInfo* info) {
    stream.Submit("mark", [this, info] {
      info_ = info;
      ++begun_;
      return 0;
    });
  }
  void End(HostStream& stream) {
    stream.Submit("mark", [this] {
      ended_ = begun_.load();
      return 0;
    });
  }
  InFlight Get() const { return {.info = info_, .sequence = begun_, .running = begun_ != ended_}; }

 private:
  std::atomic<const CommandInfo*> info_ = nullptr;
  std::atomic<uint64_t> begun_ = 0, ended_ = 0;
};

class FakeGpus {
 public:
  explicit FakeGpus(int nccl_version = 22809, bool declines = false)
      : nccl_version_(nccl_version), declines_(declines) {}

  // Of a rank.
  CudaSide Side() {
    const std::lock_guard<std::mutex> lock(mutex_);
    nccls_.push_back(std::make_shared<HostNccl>(nccl_version_, declines_));
    return {.driver = &driver_, .rank_sum = cuda::RankSum, .nccl = nccls_.back()};
  }
  HostDriver& driver() { return driver_; }

  // What the communicators of a rank of the world tell of themselves from now on.
  void BreakRank(int world_rank, nccl::Result error) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& one : nccls_) {
      if (one->world_rank() == world_rank) one->Break(error);
    }
  }

  // Of all ranks.
  int communicators() {
    return Sum([](HostNccl& one) { return one.communicators(); });
  }
  int registrations() {
    return Sum([](HostNccl& one) { return one.registrations(); });
  }
  int windows() {
    return Sum([](HostNccl& one) { return one.windows(); });
  }
  int aborts() {
    return Sum([](HostNccl& one) { return one.aborts(); });
  }
  std::vector<nccl::CtaPolicy> policies() {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<nccl::CtaPolicy> all;
    for (const auto& one : nccls_)
      for (const nccl::CtaPolicy policy : one->policies()) all.push_back(policy);
    return all;
  }

 private:
  template <typename Count>
  int Sum(const Count& count) {
    const std::lock_guard<std::mutex> lock(mutex_);
    int sum = 0;
    for (const auto& one : nccls_) sum += count(*one);
    return sum;
  }

  const int nccl_version_;
  const bool declines_;
  HostDriver driver_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<HostNccl>> nccls_;
};

// A communicator of GPUs with a stream of its own, whose calls wait for what they enqueue: for tests that
// look at the results.
class WaitingCommunicator final : public Communicator {
 public:
  explicit WaitingCommunicator(std::unique_ptr<Communicator> inner) : inner_(std::move(inner)) {
    inner_->AttachStream(static_cast<CUstream_st*>(&stream_));
    inner_->Supervise([this] { return marks_.Get(); },
                      [this](const absl::Status& status) { failure_.Set(status).IgnoreError(); });
  }
  ~WaitingCommunicator() override {
    stream_.Finish();
    inner_->Detach();
  }

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  size_t staging_bytes() const override { return inner_->staging_bytes(); }

  absl::Status AllGather(absl::Span<const GatherPart> parts, const CollectiveLabel& label) override {
    return Wait(label, [&] { return inner_->AllGather(parts, label); });
  }
  absl::Status ReduceScatter(absl::Span<const ReducePart> parts, const CollectiveLabel& label) override {
    return Wait(label, [&] { return inner_->ReduceScatter(parts, label); });
  }
  absl::Status AllReduce(absl::Span<const ReducePart> parts, const CollectiveLabel& label) override {
    return Wait(label, [&] { return inner_->AllReduce(parts, label); });
  }
  absl::Status AllToAll(const AllToAllParts& parts, const CollectiveLabel& label) override {
    return Wait(label, [&] { return inner_->AllToAll(parts, label); });
  }
  absl::Status Broadcast(void* data, size_t bytes, int root, const CollectiveLabel& label) override {
    return Wait(label, [&] { return inner_->Broadcast(data, bytes, root, label); });
  }
  absl::Status Barrier(const CollectiveLabel& label) override {
    return Wait(label, [&] { return inner_->Barrier(label); });
  }
  void Abort(absl::Status reason) override { inner_->Abort(std::move(reason)); }

  using Communicator::AllGather;
  using Communicator::AllReduce;
  using Communicator::ReduceScatter;

 private:
  absl::Status Wait(const CollectiveLabel& label, const std::function<absl::Status()>& enqueue) {
    info_.title = label.name;
    marks_.Begin(stream_, &info_);
    absl::Status status = enqueue();
    marks_.End(stream_);
    const int error = stream_.Finish();
    if (status.ok() && error != 0) status = absl::InternalError("a kernel failed");
    return status.ok() ? failure_.status() : status;
  }

  HostStream stream_;
  Marks marks_;
  CommandInfo info_;
  FirstFailure failure_;
  const std::unique_ptr<Communicator> inner_;  // goes first
};

}  // namespace ft::testing
