// CUDA's runtime on the host, for tests: memory of the heap, streams that run what they are given at once or
// as late as they may, and the rules of stream capture, whose violation is an error as on a GPU. What was
// called can be read from a log.
//
// Stricter than CUDA: every thread calls SetDevice first; asynchronous copies are between memory of the
// device and page-locked memory; while a thread captures, it gives no work to streams outside the capture,
// and a captured stream waits only for events that were recorded in this capture.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/backends/cuda/driver.h"
#include "test/doubles/cuda/memory_map.h"
#include "test/doubles/cuda/stream_work.h"

namespace ft::cuda::emulation {

// When work runs.
enum class Schedule {
  // As it is enqueued, and graphs in the order of their capture.
  kAtOnce,
  // When somebody waits for it, and then only what that needs; nodes of a graph that were captured last run
  // first where no event forbids it. Shows which events are missing.
  kLate,
};

// What the machine looks like.
struct EmulatedMachine {
  std::string no_driver = {};  // why there is no usable driver; empty when there is one
  int devices = 1;
  // Of those the ones that CUDA_VISIBLE_DEVICES shows, in its order; none given: all.
  std::optional<std::vector<int>> visible = {};
  DeviceProperties properties = {.name = "NVIDIA H200",
                                 .major = 9,
                                 .minor = 0,
                                 .multiprocessors = 132,
                                 .shared_bytes_per_block = 227 << 10,
                                 .total_bytes = uint64_t{141} << 30,
                                 .driver_version = 13000,
                                 .runtime_version = 13000};
  uint64_t others_bytes = uint64_t{1} << 30;    // of device memory, used by others
  uint64_t context_bytes = 0;                   // of device memory, used once a thread has set the device
  bool knows_used = true;                       // Properties tells used_bytes
  uint64_t pinnable_bytes = uint64_t{1} << 40;  // that the system lets one lock
  uint64_t mappable_page_bytes = uint64_t{2} << 20;  // 0: no memory that other processes can map
  bool stores = true;                                // the driver has operations on memory for streams
  Schedule schedule = Schedule::kAtOnce;
  // Why a library for attention refuses every shape; empty: there is no such library.
  std::string attention_refusal = {};
};

// What platforms are opened on (OpenPlatform) from now on. Not thread-safe.
EmulatedMachine& Machine();

struct Call {
  std::string what;  // "SetDevice 0", "Malloc", "CreateStream", "Wait", ...; the name of what was launched
                     // for "Launch"
  int stream = -1;   // numbers in the order of creation; -1: none
  int event = -1;
  uint64_t bytes = 0;
  bool captured = false;
  bool operator==(const Call&) const = default;
  std::string ToString() const;  // "Wait s1 e0 captured"
};

class EmulatedDriver final : public Driver {
 public:
  explicit EmulatedDriver(EmulatedMachine machine = {});
  ~EmulatedDriver() override;

  // What fails, by the name of the call or of what was launched, and with what: it is not made then.
  std::map<std::string, absl::Status> failures;
  std::chrono::milliseconds wait{0};  // how long Wait takes

  // Successful calls that concern devices, streams, events, graphs and memory, in order.
  std::vector<Call> Log() const;
  void ClearLog();

  absl::StatusOr<int> CountDevices() override;
  absl::StatusOr<DeviceProperties> Properties(int device) override;
  absl::Status SetDevice(int device) override;
  absl::StatusOr<FreeMemory> MemoryInfo() override;
  absl::StatusOr<void*> Malloc(uint64_t bytes) override;
  absl::StatusOr<void*> MallocHost(uint64_t bytes) override;
  absl::Status Free(void* data) override;
  absl::Status FreeHost(void* data) override;
  absl::Status LockHost(void* data, uint64_t bytes) override;
  absl::Status UnlockHost(void* data) override;
  uint64_t MappablePageBytes() override { return machine_.mappable_page_bytes; }
  absl::StatusOr<MappableMemory> MallocMappable(uint64_t bytes) override;
  absl::Status FreeMappable(const MappableMemory& memory) override;
  absl::Status Zero(void* device_data, uint64_t bytes) override;
  absl::Status Copy(void* dst, const void* src, uint64_t bytes) override;
  absl::Status CopyAsync(void* dst, const void* src, uint64_t bytes, StreamHandle stream) override;
  absl::StatusOr<StreamHandle> CreateStream(bool high_priority) override;
  absl::Status DestroyStream(StreamHandle stream) override;
  absl::Status Synchronize(StreamHandle stream) override;
  absl::StatusOr<EventHandle> CreateEvent(bool timing) override;
  absl::Status DestroyEvent(EventHandle event) override;
  absl::Status Record(EventHandle event, StreamHandle stream) override;
  absl::Status Wait(EventHandle event, StreamHandle stream) override;
  absl::Status Query(EventHandle event, bool& done) override;
  absl::Status Await(EventHandle event) override;
  absl::StatusOr<float> Elapsed(EventHandle begin, EventHandle end) override;
  absl::Status Stamp(EventHandle event, StreamHandle stream) override;
  absl::Status Store(std::initializer_list<WordWrite> words, StreamHandle stream) override;
  bool CanStore() override { return machine_.stores; }
  absl::Status BeginCapture(StreamHandle origin) override;
  absl::StatusOr<GraphHandle> EndCapture(StreamHandle origin) override;
  absl::Status LaunchGraph(GraphHandle graph, StreamHandle stream) override;
  absl::Status DestroyGraph(GraphHandle graph) override;
  absl::Status LaunchHost(void (*function)(void*), void* data, StreamHandle stream) override;
  absl::Status LaunchStatus(int error, const char* what) override;

 private:
  friend class EmulatedStream;
  using Lock = std::unique_lock<std::mutex>;

  uint64_t Used() const;               // bytes of the device, by all; the mutex is held
  bool CanLock(uint64_t bytes) const;  // the mutex is held

  // Memory of the device, in pages if there are any.
  absl::StatusOr<void*> Allocate(uint64_t bytes, uint64_t page_bytes, const char* call);
  absl::Status Release(void* data, bool in_pages, const char* call);

  absl::Status Failure(const char* call) const;  // as `failures` say
  // All Find... and Check... give the error of a call named `call`. The mutex is held.
  absl::Status CheckThread(const char* call) const;
  absl::StatusOr<EmulatedStream*> FindStream(StreamHandle stream, const char* call) const;
  absl::StatusOr<EventHandle> FindEvent(EventHandle event, const char* call) const;
  absl::StatusOr<GraphHandle> FindGraph(GraphHandle graph, const char* call) const;
  // Refuses a call that would wait for or change the device while the calling thread captures; breaks the
  // capture, as CUDA does.
  absl::Status CheckNotCapturing(const char* call);
  // Refuses work for a stream outside the capture of the calling thread.
  absl::Status CheckMayEnqueue(EmulatedStream& stream, const char* call);
  absl::Status CheckRange(const void* data, uint64_t bytes, bool must_be_known, const char* call) const;
  std::shared_ptr<Capture> OwnCapture() const;

  // A cudaError_t; the message is kept.
  int SubmitTo(EmulatedStream& stream, const char* what, std::function<int()> work, uint64_t bytes = 0);
  absl::Status RunAll(EmulatedStream& stream, Lock& lock, const char* call);
  int RunOne(EmulatedStream& stream, Lock& lock);
  int RunUpTo(const std::shared_ptr<Mark>& mark, Lock& lock);
  int RunQueue(EmulatedStream& stream, Lock& lock);
  absl::StatusOr<GraphHandle> MakeGraph(Capture& capture);
  void Note(std::string what, const EmulatedStream* stream = nullptr, const CUevent_st* event = nullptr,
            uint64_t bytes = 0);

  const EmulatedMachine machine_;
  mutable std::mutex mutex_;           // of all below; not held while work runs
  std::set<std::thread::id> threads_;  // that called SetDevice
  MemoryMap memory_;
  // Destroyed ones too: their handles must not become another's.
  std::vector<std::unique_ptr<EmulatedStream>> streams_;
  std::vector<std::unique_ptr<CUevent_st>> events_;
  std::vector<std::unique_ptr<CUgraphExec_st>> graphs_;
  std::vector<std::shared_ptr<Capture>> captures_;  // in progress
  std::vector<Call> log_;
  absl::Status lost_;  // the first failure of a kernel: nothing works afterwards
};

}  // namespace ft::cuda::emulation
