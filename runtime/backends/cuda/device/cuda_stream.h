// A stream of the CUDA device, and its events.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/backends/cuda/device/command_times.h"
#include "runtime/backends/cuda/device/device_state.h"
#include "runtime/backends/cuda/device/stream_marks.h"
#include "runtime/device/device.h"

namespace ft::cuda {

class CudaStream;

class CudaEvent final : public Event {
 public:
  // `handle` null when it could not be created; then the device has failed.
  CudaEvent(DeviceState& state, EventHandle handle) : state_(state), handle_(handle) {}
  ~CudaEvent() override;
  void Reset() override { recorded_on_ = nullptr; }
  void Await() override;

 private:
  friend class CudaStream;
  DeviceState& state_;
  const EventHandle handle_;
  const CudaStream* recorded_on_ = nullptr;  // null: not recorded yet
};

// What is enqueued goes to CUDA at once; a task runs in the thread that enqueues it and enqueues its own
// work. The first failure of the device makes all streams skip everything that follows.
class CudaStream final : public Stream {
 public:
  // Streams named "gather", "reduce" and "replica" go before others when multiprocessors get free. That named
  // "compute" measures how long it waits for others.
  static absl::StatusOr<std::unique_ptr<CudaStream>> Create(DeviceState& state, std::string name);
  ~CudaStream() override;

  void Enqueue(absl::Span<const Command> commands) override;
  void Synchronize() override;
  void Observe(StreamObserver* observer) override;
  int64_t waited_ns() const override { return marks_->waited_ns(); }
  InFlight in_flight() const override { return marks_->in_flight(); }
  void* native() const override { return handle_; }

  StreamHandle handle() const { return handle_; }

 private:
  CudaStream(DeviceState& state, std::string name, StreamHandle handle, std::unique_ptr<StreamMarks> marks);

  // The number of commands done: 1, or all waits in a row.
  absl::StatusOr<size_t> RunNext(absl::Span<const Command> commands);
  absl::StatusOr<size_t> RunWaits(absl::Span<const Command> commands);
  absl::Status Run(const Command& command);
  absl::Status Timed(const Command& command);
  absl::Status RunKernel(const Command& command);
  absl::Status RunTask(const Command& command);
  absl::Status RunCopy(const Command& command);
  absl::Status RunWait(const Command& command);
  bool IsForeign(const Command& wait) const;

  DeviceState& state_;
  const std::string name_;
  const StreamHandle handle_;
  const std::unique_ptr<StreamMarks> marks_;
  const bool measures_waits_;
  StreamObserver* observer_ = nullptr;
  CommandTimes times_;
};

}  // namespace ft::cuda
