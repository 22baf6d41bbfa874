// A place that computes: memory, streams, events, kernels. Everything on a stream is asynchronous; CUDA is
// the model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/device/command.h"
#include "runtime/device/command_history.h"
#include "runtime/device/kernel.h"

namespace ft {

// Told when each command of a stream began and ended, nanoseconds of the host's steady clock. Calls come from
// the stream's own thread or, where it has none, from Synchronize. Commands of a Recording are not told of.
class StreamObserver {
 public:
  virtual ~StreamObserver() = default;
  virtual void OnCommand(const CommandInfo& info, int64_t begin_ns, int64_t end_ns) = 0;
};

// The last task that a stream has reached.
struct InFlight {
  const CommandInfo* info = nullptr;  // null: none so far, or not known
  uint64_t sequence = 0;              // tasks begun since the stream was made
  bool running = false;               // not finished
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

  // Nanoseconds that it waited for events of other streams, since it was made. Of the past when idle.
  virtual int64_t waited_ns() const = 0;

  // Where the device stands, also inside of a Recording; says what hangs. Callable from any thread while the
  // commands that the stream was given exist. Nothing is known where tasks block: they know themselves.
  virtual InFlight in_flight() const { return {}; }

  // What it does and did last, command by command; times are those of the host's steady clock. Null where the
  // stream does not see its commands begin and end: it has in_flight then. Callable from any thread.
  virtual const CommandHistory* history() const { return nullptr; }

  // The stream as libraries of its device know it (a cudaStream_t); null where streams are threads.
  virtual void* native() const { return nullptr; }
};

// What was enqueued on streams, to be started again as a whole.
class Recording {
 public:
  virtual ~Recording() = default;
  // Starts all of it, after what the streams were given before. Returns at once.
  virtual void Start() = 0;
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
  // For the user: "NVIDIA H200, compute capability 9.0, ...".
  virtual std::string description() const { return std::string(name()); }
  // Whether Memory::data can be read and written by the host.
  virtual bool host_accessible() const = 0;

  // Errors: ResourceExhausted with the bytes wanted and available.
  virtual absl::StatusOr<std::unique_ptr<Memory>> Allocate(uint64_t bytes) = 0;

  // Of memory that other processes can map, for transports between ranks; 0: this device has none.
  virtual uint64_t mappable_page_bytes() { return 0; }
  // As Allocate, in whole pages of it. Errors: FailedPrecondition when there is none.
  virtual absl::StatusOr<std::unique_ptr<Memory>> AllocateMappable(uint64_t bytes) {
    return absl::FailedPreconditionError("this device has no memory that others can map");
  }

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

  // One that the processors of the host run, on host memory that this device allocated, in the order of the
  // stream it is launched on: that computes nothing else. Errors: as above.
  virtual absl::StatusOr<std::unique_ptr<Kernel>> CreateHostKernel(const std::string& name,
                                                                   const KernelOperands& operands,
                                                                   const KernelAttributes& attributes) = 0;

  // Between host memory of any kind and this device's; waits for the copy. Only while its streams are idle.
  virtual absl::Status Write(void* device_data, const void* host_data, uint64_t bytes) = 0;
  virtual absl::Status Read(void* host_data, const void* device_data, uint64_t bytes) = 0;

  // Whether Record is worth it. Then a program begins and ends on one stream: the others wait for an event of
  // it before anything else, and it waits for all of them last.
  virtual bool records() const { return false; }

  // Records what `enqueue` puts on `origin` and on the streams that wait for it, and runs nothing of it;
  // tasks are run once, now, and enqueue what they do. Errors: those of tasks and kernels.
  virtual absl::StatusOr<std::unique_ptr<Recording>> Record(Stream& origin,
                                                            absl::FunctionRef<void()> enqueue) {
    return absl::UnimplementedError("this device records nothing");
  }

  // FLOP/s of dense matrix products of this type by the data sheet; 0 when unknown.
  virtual double peak_flops(DType dtype) const { return 0; }

  // Bytes of memory that the device has of its own; 0: it has none, or does not say.
  virtual uint64_t memory_bytes() const { return 0; }

  // Percent of the last moments in which the device was busy, by its own account; negative when unknown.
  virtual double utilization_percent() { return -1; }

  // Bytes of device memory in use now, by this process and all others: the arena, what the device's libraries
  // took for themselves. 0 when unknown.
  virtual uint64_t used_bytes() { return 0; }

  // What was decided about kernels when they were created, a line each, for the user.
  virtual std::vector<std::string> notes() const { return {}; }

  // The first failure of a task, or OK. Thread-safe.
  virtual absl::Status status() const = 0;

  // Makes streams skip what is still enqueued, with `reason` as status unless there is one already.
  // Thread-safe.
  virtual void Cancel(const absl::Status& reason) = 0;
};

}  // namespace ft
