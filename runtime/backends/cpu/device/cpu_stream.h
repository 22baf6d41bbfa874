// A stream of the CPU device: a thread with a queue.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/backends/cpu/device/waitable_counter.h"
#include "runtime/base/first_failure.h"
#include "runtime/device/device.h"

namespace ft {

class CpuEvent final : public Event {
 public:
  void Reset() override { done_.Reset(); }
  void Record() { done_.Increment(); }
  void Wait(int64_t spin_ns) { done_.WaitFor(1, spin_ns); }
  void Await() override { Wait(0); }

 private:
  WaitableCounter done_;
};

class CpuStream final : public Stream {
 public:
  // `failure`, that of the device, is looked at before every kernel; it must outlive the stream. Waiting
  // spins for `spin_ns` before it sleeps.
  // Errors: StartThread's.
  static absl::StatusOr<std::unique_ptr<CpuStream>> Start(std::string name, size_t max_enqueued,
                                                          int64_t spin_ns, FirstFailure& failure);
  ~CpuStream() override;

  void Enqueue(absl::Span<const Command> commands) override;
  void Synchronize() override;
  void Observe(StreamObserver* observer) override { observer_ = observer; }
  int64_t waited_ns() const override { return waited_ns_; }
  const CommandHistory* history() const override { return &history_; }

 private:
  CpuStream(std::string name, size_t max_enqueued, int64_t spin_ns, FirstFailure& failure);
  void Loop();
  void RunAll(absl::Span<const Command> commands);
  void Run(const Command& command);

  const std::string name_;
  const int64_t spin_ns_;
  FirstFailure& failure_;
  StreamObserver* observer_ = nullptr;  // handed over by enqueued_
  int64_t waited_ns_ = 0;               // handed back by finished_
  CommandHistory history_;
  std::vector<absl::Span<const Command>> ring_;
  WaitableCounter enqueued_;
  WaitableCounter finished_;
  uint32_t num_enqueued_ = 0;  // the enqueuing thread's own count
  std::thread thread_;         // last: it uses all of the above
};

}  // namespace ft
