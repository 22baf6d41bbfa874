// A driver without anything: a base of those that have a part of one.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/backends/cuda/driver.h"

namespace ft::cuda {

class NoDriver : public Driver {
 public:
  absl::StatusOr<int> CountDevices() override { return No(); }
  absl::StatusOr<DeviceProperties> Properties(int) override { return No(); }
  absl::Status SetDevice(int) override { return No(); }
  absl::StatusOr<FreeMemory> MemoryInfo() override { return No(); }
  absl::StatusOr<void*> Malloc(uint64_t) override { return No(); }
  absl::StatusOr<void*> MallocHost(uint64_t) override { return No(); }
  absl::Status Free(void*) override { return No(); }
  absl::Status FreeHost(void*) override { return No(); }
  absl::Status LockHost(void*, uint64_t) override { return No(); }
  absl::Status UnlockHost(void*) override { return No(); }
  uint64_t MappablePageBytes() override { return 0; }
  absl::StatusOr<MappableMemory> MallocMappable(uint64_t) override { return No(); }
  absl::Status FreeMappable(const MappableMemory&) override { return No(); }
  absl::Status Zero(void*, uint64_t) override { return No(); }
  absl::Status Copy(void*, const void*, uint64_t) override { return No(); }
  absl::Status CopyAsync(void*, const void*, uint64_t, StreamHandle) override { return No(); }
  absl::StatusOr<StreamHandle> CreateStream(bool) override { return No(); }
  absl::Status DestroyStream(StreamHandle) override { return No(); }
  absl::Status Synchronize(StreamHandle) override { return No(); }
  absl::StatusOr<EventHandle> CreateEvent(bool) override { return No(); }
  absl::Status DestroyEvent(EventHandle) override { return No(); }
  absl::Status Record(EventHandle, StreamHandle) override { return No(); }
  absl::Status Wait(EventHandle, StreamHandle) override { return No(); }
  absl::Status Query(EventHandle, bool&) override { return No(); }
  absl::Status Await(EventHandle) override { return No(); }
  absl::StatusOr<float> Elapsed(EventHandle, EventHandle) override { return No(); }
  absl::Status Stamp(EventHandle, StreamHandle) override { return No(); }
  absl::Status Store(std::initializer_list<WordWrite>, StreamHandle) override { return No(); }
  bool CanStore() override { return false; }
  absl::Status BeginCapture(StreamHandle) override { return No(); }
  absl::StatusOr<GraphHandle> EndCapture(StreamHandle) override { return No(); }
  absl::Status LaunchGraph(GraphHandle, StreamHandle) override { return No(); }
  absl::Status DestroyGraph(GraphHandle) override { return No(); }
  absl::Status LaunchHost(void (*)(void*), void*, StreamHandle) override { return No(); }
  absl::Status LaunchStatus(int, const char*) override { return No(); }

 private:
  static absl::Status No() { return absl::UnimplementedError("this driver of tests has none"); }
};

}  // namespace ft::cuda
