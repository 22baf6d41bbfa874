#include "runtime/collective/emulated_link.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "runtime/base/first_failure.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

using Clock = std::chrono::steady_clock;

class LinkedCommunicator final : public Communicator {
 public:
  LinkedCommunicator(std::unique_ptr<Communicator> inner, const EmulatedLink& link)
      : inner_(std::move(inner)), link_(link) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }

  absl::Status AllGather(absl::Span<const GatherPart> parts, const CollectiveLabel& label) override {
    const Clock::time_point end =
        Reserve(Total(parts, [](const GatherPart& part) { return part.bytes; }) * ranks(), 1);
    FT_RETURN_IF_ERROR(inner_->AllGather(parts, label));
    return SleepUntil(end);
  }

  absl::Status ReduceScatter(absl::Span<const ReducePart> parts, const CollectiveLabel& label) override {
    const Clock::time_point end = Reserve(Total(parts, ResultBytes) * ranks(), 1);
    FT_RETURN_IF_ERROR(inner_->ReduceScatter(parts, label));
    return SleepUntil(end);
  }

  absl::Status AllReduce(absl::Span<const ReducePart> parts, const CollectiveLabel& label) override {
    const Clock::time_point end = Reserve(Total(parts, ResultBytes), 2);
    FT_RETURN_IF_ERROR(inner_->AllReduce(parts, label));
    return SleepUntil(end);
  }

  absl::Status AllToAll(const AllToAllParts& parts, const CollectiveLabel& label) override {
    const Clock::time_point end =
        Reserve(Total(parts.sends, [](const SendPart& part) { return part.bytes; }), 1);
    FT_RETURN_IF_ERROR(inner_->AllToAll(parts, label));
    return SleepUntil(end);
  }

  absl::Status Broadcast(void* data, size_t bytes, int root, const CollectiveLabel& label) override {
    return inner_->Broadcast(data, bytes, root, label);
  }

  absl::Status Barrier(const CollectiveLabel& label) override { return inner_->Barrier(label); }

  void Abort(absl::Status reason) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      aborted_.Set(reason).IgnoreError();
    }
    wake_.notify_all();
    inner_->Abort(std::move(reason));
  }

  size_t staging_bytes() const override { return inner_->staging_bytes(); }

 private:
  static uint64_t ResultBytes(const ReducePart& part) { return part.count * SizeOf(part.dtype); }

  template <typename Part, typename Bytes>
  static uint64_t Total(absl::Span<const Part> parts, const Bytes& bytes) {
    uint64_t total = 0;
    for (const Part& part : parts) total += bytes(part);
    return total;
  }

  uint64_t ranks() const { return static_cast<uint64_t>(size()); }

  // Until when the link is taken by a collective that begins now.
  Clock::time_point Reserve(uint64_t bytes, int passes) {
    const std::chrono::nanoseconds cost(LinkNanoseconds(link_, size(), bytes, passes));
    free_at_ = std::max(Clock::now(), free_at_) + cost;
    return free_at_;
  }

  absl::Status SleepUntil(Clock::time_point end) {
    std::unique_lock<std::mutex> lock(mutex_);
    wake_.wait_until(lock, end, [this] { return aborted_.failed(); });
    return aborted_.status();
  }

  const std::unique_ptr<Communicator> inner_;
  const EmulatedLink link_;
  Clock::time_point free_at_{};  // of the thread that owns the communicator
  std::mutex mutex_;
  std::condition_variable wake_;
  FirstFailure aborted_;
};

}  // namespace

int64_t LinkNanoseconds(const EmulatedLink& link, int ranks, uint64_t bytes, int passes) {
  if (ranks <= 1) return 0;
  const double bits = 8.0 * static_cast<double>(bytes) * passes * (ranks - 1) / ranks;
  return std::llround(link.latency_us * 1e3 +
                      bits / link.gigabits_per_s);  // a gigabit per second is a bit per ns
}

std::unique_ptr<Communicator> EmulateLink(std::unique_ptr<Communicator> communicator,
                                          const EmulatedLink& link) {
  return std::make_unique<LinkedCommunicator>(std::move(communicator), link);
}

}  // namespace ft
