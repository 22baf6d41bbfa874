#include "runtime/backends/cuda/device/cuda_memory.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"

namespace ft::cuda {
namespace {

enum class Place { kDevice, kHost };

class CudaMemory final : public Memory {
 public:
  CudaMemory(DeviceState& state, Place place, void* data, uint64_t bytes)
      : state_(state), place_(place), data_(data), bytes_(bytes) {}

  ~CudaMemory() override {
    if (!state_.MakeCurrent()) return;
    (place_ == Place::kDevice ? state_.driver.Free(data_) : state_.driver.FreeHost(data_)).IgnoreError();
  }

  void* data() const override { return data_; }
  uint64_t bytes() const override { return bytes_; }

 private:
  DeviceState& state_;
  const Place place_;
  void* const data_;
  const uint64_t bytes_;
};

std::string WithGib(uint64_t bytes) {
  return absl::StrFormat("%d bytes (%.2f GiB)", bytes, static_cast<double>(bytes) / (1 << 30));
}

absl::Status TooLittle(DeviceState& state, const std::string& device_name, uint64_t bytes) {
  FT_ASSIGN_OR_RETURN(const FreeMemory memory, state.driver.MemoryInfo());
  return absl::ResourceExhaustedError(absl::StrCat(
      "the arena needs ", WithGib(bytes), ", CUDA device ", state.number, " (", device_name, ") has ",
      WithGib(memory.free), " free of ", WithGib(memory.total),
      "; use a smaller batch, more ranks or a strategy that shards more, or end what else runs there"));
}

// CUDA allocates nothing for 0 bytes; an arena has an address all the same.
uint64_t AtLeastOne(uint64_t bytes) { return std::max(bytes, uint64_t{1}); }

}  // namespace

absl::StatusOr<std::unique_ptr<Memory>> AllocateDeviceMemory(DeviceState& state,
                                                             const std::string& device_name, uint64_t bytes) {
  if (!state.MakeCurrent()) return state.failure.status();
  absl::StatusOr<void*> data = state.driver.Malloc(AtLeastOne(bytes));
  if (absl::IsResourceExhausted(data.status())) return TooLittle(state, device_name, bytes);
  if (!data.ok()) return data.status();
  auto memory = std::make_unique<CudaMemory>(state, Place::kDevice, *data, bytes);
  FT_RETURN_IF_ERROR(state.driver.Zero(*data, AtLeastOne(bytes)));
  return memory;
}

absl::StatusOr<std::unique_ptr<Memory>> AllocatePinnedMemory(DeviceState& state, uint64_t bytes) {
  if (!state.MakeCurrent()) return state.failure.status();
  absl::StatusOr<void*> data = state.driver.MallocHost(AtLeastOne(bytes));
  if (absl::IsResourceExhausted(data.status())) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the system does not lock ", WithGib(bytes),
                     " of host memory: it has less free, or a limit (container, ulimit -l) is lower; keep "
                     "less on the host, or raise the limit"));
  }
  if (!data.ok()) return data.status();
  std::memset(*data, 0, bytes);
  return std::make_unique<CudaMemory>(state, Place::kHost, *data, bytes);
}

}  // namespace ft::cuda
