// A place that computes: memory, streams, events, kernels. Everything on a stream is asynchronous; CUDA is
// the model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/device/command.h"
#include "runtime/device/kernel.h"

namespace ft {

// Told when each command of a stream began and ended, nanoseconds of the device's clock. Calls come from the
// stream's own thread.
class StreamObserver {
 public:
  virtual ~StreamObserver() = default;
  virtual void OnCommand(const CommandInfo& info, int64_t begin_ns, int64_t end_ns) = 0;
};

// Commands run one after the other, in the order they were enqueued. All methods are called by one thread.
class Stream {
 public:
  virtual ~Stream() = default;

  // Returns at once; allocates nothing. `commands` stay valid until Synchronize. A kWait must be enqueued
  // after the kRecord of its event, whatever the streams. After a task has failed, kernels, tasks and copies
  // of all streams of the device are skipped.
  virtual void Enqueue(absl::Span<const Command> commands) = 0;

  // Waits for all that was enqueued. Then, on any stream, Device::status tells of failures.
  virtual void Synchronize() = 0;

  // From the next Enqueue on; null for none. Only while the stream is idle.
  virtual void Observe(StreamObserver* observer) = 0;
};

// One arena; freed when it goes. Zeroed.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual void* data() const = 0;
  virtual uint64_t bytes() const = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual std::string_view name() const = 0;  // "cpu"
  // Whether Memory::data can be read and written by the host.
  virtual bool host_accessible() const = 0;

  // Errors: ResourceExhausted with the bytes wanted and available.
  virtual absl::StatusOr<std::unique_ptr<Memory>> Allocate(uint64_t bytes) = 0;

  // Memory of the host that copies to and from this device can use at full speed: page-locked where that
  // makes a difference. Errors: as above.
  virtual absl::StatusOr<std::unique_ptr<Memory>> AllocateHost(uint64_t bytes) = 0;

  // `commands` is how many spans may be enqueued between two Synchronize.
  virtual absl::StatusOr<std::unique_ptr<Stream>> CreateStream(std::string name, size_t max_enqueued) = 0;
  virtual std::unique_ptr<Event> CreateEvent() = 0;

  // Errors: FailedPrecondition when this device has no such kernel, else those of the kernel's factory.
  virtual absl::StatusOr<std::unique_ptr<Kernel>> CreateKernel(const std::string& name,
                                                               const KernelOperands& operands,
                                                               const KernelAttributes& attributes) = 0;

  // The first failure of a task, or OK. Thread-safe.
  virtual absl::Status status() const = 0;

  // Makes streams skip what is still enqueued, with `reason` as status unless there is one already.
  // Thread-safe.
  virtual void Cancel(const absl::Status& reason) = 0;
};

}  // namespace ft
