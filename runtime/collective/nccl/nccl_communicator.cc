#include "runtime/collective/nccl/nccl_communicator.h"

#include <functional>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/communicator_staging.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/nccl/device_memory.h"
#include "runtime/collective/nccl/rank_ordered_sum.h"
#include "runtime/collective/nccl/transfers.h"
#include "runtime/collective/own_parts.h"
#include "runtime/collective/tree_sum.h"
#include "runtime/device/device.h"

namespace ft::nccl {
namespace {

// Ranks come to the end together, or something is wrong.
constexpr absl::Duration kFarewell = absl::Seconds(2);

class NcclCommunicator final : public Communicator, private Watched {
 public:
  NcclCommunicator(std::unique_ptr<NcclHandle> handle, NcclCommunicatorOptions options, DeviceMemory staging)
      : options_(std::move(options)),
        staging_(std::move(staging)),
        handle_(std::move(handle)),
        ordered_({.handle = handle_.get(),
                  .driver = options_.cuda.driver,
                  .rank_sum = options_.cuda.rank_sum,
                  .rank = options_.rank,
                  .size = options_.size,
                  .staging = staging_.data(),
                  .bytes = staging_.bytes()}),
        detector_(options_.stall) {
    options_.watchdog->Add(this);
  }

  ~NcclCommunicator() override {
    options_.watchdog->Remove(this);
    handle_->Close(absl::Now() + kFarewell);
  }

  int rank() const override { return options_.rank; }
  int size() const override { return options_.size; }
  size_t staging_bytes() const override { return staging_.bytes(); }

  absl::Status AllGather(absl::Span<const GatherPart> parts, const CollectiveLabel& label) override {
    return Enqueue(label, [&] {
      return handle_->Group([&](NcclApi& api, CommHandle comm) {
        Result result = kSuccess;
        for (const GatherPart& part : parts) {
          if (part.bytes == 0) continue;
          result = api.AllGather(part.src, part.dst, part.bytes, kInt8, comm, stream_);
          if (result != kSuccess && result != kInProgress) break;
        }
        return result;
      });
    });
  }

  absl::Status ReduceScatter(absl::Span<const ReducePart> parts, const CollectiveLabel& label) override {
    FT_RETURN_IF_ERROR(CheckReductions(parts, label));
    return Enqueue(label, [&] {
      if (options_.deterministic) return ordered_.ReduceScatter(parts, stream_);
      return Reduce(parts, [&](NcclApi& api, CommHandle comm, const ReducePart& part) {
        return api.ReduceScatter(part.src, part.dst, part.count, TypeOf(part.dtype), kSum, comm, stream_);
      });
    });
  }

  absl::Status AllReduce(absl::Span<const ReducePart> parts, const CollectiveLabel& label) override {
    FT_RETURN_IF_ERROR(CheckReductions(parts, label));
    return Enqueue(label, [&] {
      if (options_.deterministic) return ordered_.AllReduce(parts, stream_);
      return Reduce(parts, [&](NcclApi& api, CommHandle comm, const ReducePart& part) {
        return api.AllReduce(part.src, part.dst, part.count, TypeOf(part.dtype), kSum, comm, stream_);
      });
    });
  }

  absl::Status AllToAll(const AllToAllParts& parts, const CollectiveLabel& label) override {
    return Enqueue(label, [&] {
      absl::Status copied;
      ForEachOwn(parts.sends, parts.receives, options_.rank,
                 [&](const SendPart& from, const ReceivePart& to) {
                   if (copied.ok() && to.bytes > 0)
                     copied = options_.cuda.driver->CopyAsync(to.dst, from.src, to.bytes, stream_);
                 });
      FT_RETURN_IF_ERROR(copied);
      return handle_->Group([&](NcclApi& api, CommHandle comm) {
        Transfers transfers(api, comm, stream_);
        for (const SendPart& part : parts.sends)
          if (part.peer != options_.rank) transfers.Send(part.src, part.bytes, part.peer);
        for (const ReceivePart& part : parts.receives)
          if (part.peer != options_.rank) transfers.Receive(part.dst, part.bytes, part.peer);
        return transfers.result();
      });
    });
  }

  absl::Status Broadcast(void* data, size_t bytes, int root, const CollectiveLabel& label) override {
    if (root < 0 || root >= size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(label.name, ": there is no root rank ", root, " among ", size()));
    }
    return Enqueue(label, [&] {
      return handle_->Group([&](NcclApi& api, CommHandle comm) {
        return bytes == 0 ? kSuccess : api.Broadcast(data, data, bytes, kInt8, root, comm, stream_);
      });
    });
  }

  absl::Status Barrier(const CollectiveLabel& label) override {
    FT_RETURN_IF_ERROR(Enqueue(label, [&] {
      return handle_->Group([&](NcclApi& api, CommHandle comm) {
        return api.AllReduce(staging_.data(), staging_.data(), 1, kInt32, kSum, comm, stream_);
      });
    }));
    FT_RETURN_IF_ERROR(options_.cuda.driver->Synchronize(stream_));
    return handle_->status();  // an aborted stream is idle, too
  }

  void AttachStream(void* native_stream) override {
    stream_ = static_cast<cuda::StreamHandle>(native_stream);
  }

  bool has_windows() const override { return options_.windows; }

  absl::Status RegisterBuffer(void* data, size_t bytes) override {
    if (options_.windows)
      return handle_->RegisterWindow(data, bytes,
                                     {absl::Now() + options_.connect_timeout, options_.interrupted});
    handle_->Register(data, bytes);
    return absl::OkStatus();
  }

  void Supervise(std::function<InFlight()> in_flight,
                 std::function<void(const absl::Status&)> on_failure) override {
    const std::lock_guard<std::mutex> lock(supervision_mutex_);
    in_flight_ = std::move(in_flight);
    on_failure_ = std::move(on_failure);
  }

  void Detach() override {
    Supervise({}, {});
    handle_->Deregister();
    stream_ = nullptr;
  }

  void Abort(absl::Status reason) override {
    handle_->Fail(std::move(reason));
    options_.watchdog->Wake();
  }

 private:
  // Runs `enqueue` while the watchdog knows what the host is about.
  template <typename F>
  absl::Status Enqueue(const CollectiveLabel& label, const F& enqueue) {
    FT_RETURN_IF_ERROR(handle_->status());
    if (stream_ == nullptr)
      return absl::InternalError(absl::StrCat(label.name, ": its communicator has no stream"));
    {
      const std::lock_guard<std::mutex> lock(label_mutex_);
      last_.name = label.name;
      ++last_.sequence;
      names_.insert(last_.name);
      enqueuing_ = true;
    }
    const absl::Status status = enqueue();
    const std::lock_guard<std::mutex> lock(label_mutex_);
    enqueuing_ = false;
    return status;
  }

  // The fast way: `call` is NCCL's function for one part.
  template <typename Call>
  absl::Status Reduce(absl::Span<const ReducePart> parts, const Call& call) {
    return handle_->Group([&](NcclApi& api, CommHandle comm) {
      Result result = kSuccess;
      for (const ReducePart& part : parts) {
        if (part.count == 0) continue;
        result = call(api, comm, part);
        if (result != kSuccess && result != kInProgress) break;
      }
      return result;
    });
  }

  static DataType TypeOf(DType dtype) {
    switch (dtype) {
      case DType::kF32:
        return kFloat32;
      case DType::kBF16:
        return kBfloat16;
      case DType::kF16:
        return kFloat16;
      case DType::kF64:
        return kFloat64;
      case DType::kI32:
        return kInt32;
      case DType::kI64:
        return kInt64;
      case DType::kU8:
        break;  // CheckReductions refused it
    }
    return kUint8;
  }

  void Watch(absl::Time now) override {
    if (!handle_->status().ok()) {
      handle_->Abort();
      return;
    }
    const std::lock_guard<std::mutex> lock(supervision_mutex_);
    const std::optional<Position> position = Here();
    absl::Status status = handle_->AsyncError();
    if (!status.ok()) {
      const std::string where = position.has_value() ? Describe(*position) : LastEnqueued();
      status = absl::Status(status.code(), absl::StrCat(status.message(), ", in ", where));
    } else {
      status = detector_.Look(now, position);
    }
    if (status.ok()) return;
    handle_->Fail(status);
    // First, so that nothing believes what an aborted collective leaves behind.
    if (on_failure_) on_failure_(status);
    handle_->Abort();
  }

  // The collective of this communicator that is in progress, on the host or on the device.
  std::optional<Position> Here() {
    const std::lock_guard<std::mutex> lock(label_mutex_);
    if (enqueuing_) return last_;
    if (!in_flight_) return std::nullopt;
    const InFlight at = in_flight_();
    // Communicators of several axes share a stream.
    if (!at.running || at.info == nullptr || !names_.contains(at.info->title)) return std::nullopt;
    return Position{.side = Position::Side::kDevice, .sequence = at.sequence, .name = at.info->title};
  }

  std::string LastEnqueued() {
    const std::lock_guard<std::mutex> lock(label_mutex_);
    return last_.sequence == 0 ? "no collective" : absl::StrCat("or before ", Describe(last_));
  }

  const NcclCommunicatorOptions options_;
  const DeviceMemory staging_;
  const std::unique_ptr<NcclHandle> handle_;
  RankOrderedSum ordered_;
  cuda::StreamHandle stream_ = nullptr;

  std::mutex label_mutex_;
  Position last_{Position::Side::kEnqueue, 0, ""};  // the last that the host began to enqueue
  bool enqueuing_ = false;
  std::unordered_set<std::string> names_;  // of all collectives so far

  std::mutex supervision_mutex_;  // taken before label_mutex_
  std::function<InFlight()> in_flight_;
  std::function<void(const absl::Status&)> on_failure_;
  StallDetector detector_;  // of the watchdog's thread
};

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> CreateNcclCommunicator(std::unique_ptr<NcclHandle> handle,
                                                                     NcclCommunicatorOptions options) {
  if (options.deterministic && options.size > cuda::kMaxRankSumRanks) {
    return absl::InvalidArgumentError(absl::StrCat("sums in the order of ranks are for at most ",
                                                   cuda::kMaxRankSumRanks, " ranks, this group has ",
                                                   options.size));
  }
  FT_ASSIGN_OR_RETURN(DeviceMemory staging,
                      DeviceMemory::Allocate(*options.cuda.driver, options.staging_bytes));
  FT_RETURN_IF_ERROR(options.cuda.driver->Zero(staging.data(), kBarrierStaging));
  return std::make_unique<NcclCommunicator>(std::move(handle), std::move(options), std::move(staging));
}

size_t NcclStagingBytes(bool deterministic) {
  return deterministic ? kDeterministicStaging : kBarrierStaging;
}

}  // namespace ft::nccl
