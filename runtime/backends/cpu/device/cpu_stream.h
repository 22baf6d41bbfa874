// A stream of the CPU device: a thread with a queue.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/backends/cpu/device/waitable_counter.h"
#include "runtime/device/device.h"

namespace ft {

// The first failure on a device; streams look at it before every kernel.
class FailureLatch {
 public:
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  void Set(const absl::Status& status);
  absl::Status status() const;

 private:
  std::atomic<bool> failed_ = false;
  mutable std::mutex mutex_;
  absl::Status status_;
};

class CpuEvent final : public Event {
 public:
  void Reset() override { done_.Reset(); }
  void Record() { done_.Increment(); }
  void Wait(int64_t spin_ns) { done_.WaitFor(1, spin_ns); }

 private:
  WaitableCounter done_;
};

class CpuStream final : public Stream {
 public:
  // `failure` must outlive the stream. Waiting spins for `spin_ns` before it sleeps.
  CpuStream(std::string name, size_t max_enqueued, int64_t spin_ns, FailureLatch& failure);
  ~CpuStream() override;

  void Enqueue(absl::Span<const Command> commands) override;
  void Synchronize() override;
  void Observe(StreamObserver* observer) override { observer_ = observer; }

 private:
  void Loop();
  void RunAll(absl::Span<const Command> commands);
  void Run(const Command& command);
  void RunObserved(const Command& command);

  const std::string name_;
  const int64_t spin_ns_;
  FailureLatch& failure_;
  StreamObserver* observer_ = nullptr;  // handed over by enqueued_
  std::vector<absl::Span<const Command>> ring_;
  WaitableCounter enqueued_;
  WaitableCounter finished_;
  uint32_t num_enqueued_ = 0;  // the enqueuing thread's own count
  std::thread thread_;         // last: it uses all of the above
};

}  // namespace ft
