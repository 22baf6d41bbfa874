// What this backend asks of CUDA's runtime, as an interface: one implementation calls it (cudart), one
// emulates it on the host for tests. Nothing else in the backend calls the runtime, but for the launches of
// our own device code in runtime/kernels.
//
// All errors are absl::Internal "cudaMalloc(4096) failed: out of memory (cudaErrorMemoryAllocation), at
// file:line" unless said otherwise. The calling thread must have called SetDevice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/backends/cuda/device_code/launch.h"

// The handles of CUDA's runtime: cudaStream_t, cudaEvent_t, cudaGraphExec_t.
struct CUevent_st;
struct CUgraphExec_st;

namespace ft::cuda {

using EventHandle = CUevent_st*;
using GraphHandle = CUgraphExec_st*;

struct DeviceProperties {
  std::string name;  // "NVIDIA H200"
  // "0000:3B:00.0", the same for every process of the machine; empty: not known.
  std::string pci_address = {};
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  size_t shared_bytes_per_block = 0;  // with opt-in
  uint64_t total_bytes = 0;
  // Of its memory, by all processes, when this was asked; none: not known.
  std::optional<uint64_t> used_bytes = {};
  int driver_version = 0;   // the newest CUDA that the driver knows: 13000 for 13.0
  int runtime_version = 0;  // that this program was built with
};

struct FreeMemory {
  uint64_t free = 0, total = 0;
};

// Memory of the device that other processes can map; `bytes` of whole pages.
struct MappableMemory {
  void* data = nullptr;
  uint64_t bytes = 0;
};

struct WordWrite {
  uint64_t* address = nullptr;
  uint64_t value = 0;
};

class Driver {
 public:
  virtual ~Driver() = default;

  // 0 without an error when there is a driver but no device. FailedPrecondition without a usable driver, in
  // words for the user.
  virtual absl::StatusOr<int> CountDevices() = 0;
  virtual absl::StatusOr<DeviceProperties> Properties(int device) = 0;
  virtual absl::Status SetDevice(int device) = 0;

  virtual absl::StatusOr<FreeMemory> MemoryInfo() = 0;
  // ResourceExhausted when there is not as much.
  virtual absl::StatusOr<void*> Malloc(uint64_t bytes) = 0;
  virtual absl::StatusOr<void*> MallocHost(uint64_t bytes) = 0;  // pinned, mapped, portable
  virtual absl::Status Free(void* data) = 0;
  virtual absl::Status FreeHost(void* data) = 0;
  // As MallocHost has it, of memory that is the caller's, until it is unlocked.
  virtual absl::Status LockHost(void* data, uint64_t bytes) = 0;
  virtual absl::Status UnlockHost(void* data) = 0;
  // Of memory that other processes can map, such as NCCL's of other ranks; 0: the device or the driver has
  // none.
  virtual uint64_t MappablePageBytes() = 0;
  // As Malloc, one allocation in whole pages of such memory. FailedPrecondition when there is none.
  virtual absl::StatusOr<MappableMemory> MallocMappable(uint64_t bytes) = 0;
  virtual absl::Status FreeMappable(const MappableMemory& memory) = 0;
  virtual absl::Status Zero(void* device_data, uint64_t bytes) = 0;           // synchronous
  virtual absl::Status Copy(void* dst, const void* src, uint64_t bytes) = 0;  // synchronous, either direction
  virtual absl::Status CopyAsync(void* dst, const void* src, uint64_t bytes, StreamHandle stream) = 0;

  // Non-blocking with regard to the legacy stream. `high_priority` for streams of communication.
  virtual absl::StatusOr<StreamHandle> CreateStream(bool high_priority) = 0;
  virtual absl::Status DestroyStream(StreamHandle stream) = 0;
  // Blocks without spinning where CUDA allows it.
  virtual absl::Status Synchronize(StreamHandle stream) = 0;

  virtual absl::StatusOr<EventHandle> CreateEvent(bool timing) = 0;
  virtual absl::Status DestroyEvent(EventHandle event) = 0;
  virtual absl::Status Record(EventHandle event, StreamHandle stream) = 0;
  virtual absl::Status Wait(EventHandle event, StreamHandle stream) = 0;
  virtual absl::Status Query(EventHandle event, bool& done) = 0;
  // Blocks without spinning until it has happened.
  virtual absl::Status Await(EventHandle event) = 0;
  // Milliseconds between two events with timing that have both happened.
  virtual absl::StatusOr<float> Elapsed(EventHandle begin, EventHandle end) = 0;

  // As Record, of an event with timing; in a recording it happens each time that this is started, and can be
  // asked for as if it had been recorded outside. Streams do not wait for it.
  virtual absl::Status Stamp(EventHandle event, StreamHandle stream) = 0;

  // Writes words of page-locked memory when the stream comes to it, in their order, behind all that was
  // written before; in a recording too. Takes no multiprocessor. Only where CanStore.
  virtual absl::Status Store(std::initializer_list<WordWrite> words, StreamHandle stream) = 0;
  virtual bool CanStore() = 0;

  // Between these two, work for `origin`, and for streams that wait for its events, is recorded rather than
  // run. All of them must have joined `origin` again at the end. EndCapture instantiates the graph.
  virtual absl::Status BeginCapture(StreamHandle origin) = 0;
  virtual absl::StatusOr<GraphHandle> EndCapture(StreamHandle origin) = 0;
  virtual absl::Status LaunchGraph(GraphHandle graph, StreamHandle stream) = 0;
  virtual absl::Status DestroyGraph(GraphHandle graph) = 0;

  // Has a thread of CUDA's call function(data) when the stream comes to it, in a recording too: each time
  // that this is started. It must not call CUDA.
  virtual absl::Status LaunchHost(void (*function)(void* data), void* data, StreamHandle stream) = 0;

  // A cudaError_t that a launch returned, as a status; OK for 0. `what` says what was launched.
  virtual absl::Status LaunchStatus(int error, const char* what) = 0;
};

}  // namespace ft::cuda
