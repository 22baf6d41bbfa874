// CUDA's runtime itself. It is linked statically and finds the driver, libcuda.so.1, when it is first called.
#pragma once

#include "runtime/backends/cuda/driver.h"

namespace ft::cuda {

// What cudaGetDeviceCount says, in words for the user: `error` is a cudaError_t; versions as CUDA counts
// them, 13000 for 13.0; `driver_version` 0 without a driver.
absl::StatusOr<int> DeviceCount(int error, int count, int driver_version, int runtime_version);

class CudartDriver final : public Driver {
 public:
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
  uint64_t MappablePageBytes() override;
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
  bool CanStore() override;

  absl::Status BeginCapture(StreamHandle origin) override;
  absl::StatusOr<GraphHandle> EndCapture(StreamHandle origin) override;
  absl::Status LaunchGraph(GraphHandle graph, StreamHandle stream) override;
  absl::Status DestroyGraph(GraphHandle graph) override;

  absl::Status LaunchHost(void (*function)(void*), void* data, StreamHandle stream) override;
  absl::Status LaunchStatus(int error, const char* what) override;
};

}  // namespace ft::cuda
