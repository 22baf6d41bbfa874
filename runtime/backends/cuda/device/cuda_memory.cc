#include "runtime/backends/cuda/device/cuda_memory.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/host_pages.h"
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

// Pages of the device that other processes may have mapped.
class PagedMemory final : public Memory {
 public:
  PagedMemory(DeviceState& state, const MappableMemory& pages, uint64_t bytes)
      : state_(state), pages_(pages), bytes_(bytes) {}
  ~PagedMemory() override {
    if (state_.MakeCurrent()) state_.driver.FreeMappable(pages_).IgnoreError();
  }

  void* data() const override { return pages_.data; }
  uint64_t bytes() const override { return bytes_; }

 private:
  DeviceState& state_;
  const MappableMemory pages_;
  const uint64_t bytes_;
};

// Pages of the host that are locked.
class LockedMemory final : public Memory {
 public:
  LockedMemory(DeviceState& state, std::unique_ptr<HostPages> pages)
      : state_(state), pages_(std::move(pages)) {}
  // Pages that are not known to be unlocked stay: work that failed may still be using them.
  ~LockedMemory() override {
    if (!state_.MakeCurrent() || !state_.driver.UnlockHost(pages_->data()).ok())
      std::ignore = pages_.release();
  }

  void* data() const override { return pages_->data(); }
  uint64_t bytes() const override { return pages_->bytes(); }

 private:
  DeviceState& state_;
  std::unique_ptr<HostPages> pages_;
};

constexpr uint64_t kManyPages = uint64_t{64} << 20;  // that several threads fill
constexpr int kMostThreads = 8;

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

absl::Status NotLocked(uint64_t bytes, const absl::Status& why) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the system does not lock ", WithGib(bytes),
                   " of host memory: it has less free, or a limit (container, ulimit -l) is lower; keep "
                   "less on the host, or raise the limit (",
                   why.message(), ")"));
}

absl::StatusOr<std::unique_ptr<Memory>> FillAndLock(DeviceState& state, uint64_t bytes,
                                                    std::optional<int> numa_node, std::string& note) {
  const absl::Time begin = absl::Now();
  const int threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostThreads);
  FT_ASSIGN_OR_RETURN(std::unique_ptr<HostPages> pages,
                      HostPages::Create(bytes, {.numa_node = numa_node.value_or(-1), .threads = threads}));
  FT_RETURN_IF_ERROR(state.driver.LockHost(pages->data(), bytes));
  note = absl::StrFormat("locked %.2f GiB of host memory in %.2f s", static_cast<double>(bytes) / (1 << 30),
                         absl::ToDoubleSeconds(absl::Now() - begin));
  if (pages->is_on_node()) absl::StrAppend(&note, ", on NUMA node ", *numa_node, " as far as that has room");
  return std::make_unique<LockedMemory>(state, std::move(pages));
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

absl::StatusOr<std::unique_ptr<Memory>> AllocateMappableMemory(DeviceState& state,
                                                               const std::string& device_name, uint64_t bytes,
                                                               std::string& note) {
  if (!state.MakeCurrent()) return state.failure.status();
  const absl::StatusOr<MappableMemory> pages = state.driver.MallocMappable(AtLeastOne(bytes));
  if (absl::IsResourceExhausted(pages.status())) return TooLittle(state, device_name, bytes);
  if (!pages.ok()) return pages.status();
  auto memory = std::make_unique<PagedMemory>(state, *pages, bytes);
  FT_RETURN_IF_ERROR(state.driver.Zero(pages->data, AtLeastOne(bytes)));
  note = absl::StrFormat("took %d bytes of memory that ranks of this host can map, %d more than asked",
                         pages->bytes, pages->bytes - bytes);
  return memory;
}

absl::StatusOr<std::unique_ptr<Memory>> AllocatePinnedMemory(DeviceState& state, uint64_t bytes,
                                                             std::optional<int> numa_node,
                                                             std::string& note) {
  if (!state.MakeCurrent()) return state.failure.status();
  if (bytes >= kManyPages) {
    absl::StatusOr<std::unique_ptr<Memory>> locked = FillAndLock(state, bytes, numa_node, note);
    if (absl::IsResourceExhausted(locked.status())) return NotLocked(bytes, locked.status());
    if (locked.ok() || state.failure.failed()) return locked;
  }
  // Few pages, and drivers that lock none but their own.
  absl::StatusOr<void*> data = state.driver.MallocHost(AtLeastOne(bytes));
  if (absl::IsResourceExhausted(data.status())) return NotLocked(bytes, data.status());
  if (!data.ok()) return data.status();
  std::memset(*data, 0, bytes);
  return std::make_unique<CudaMemory>(state, Place::kHost, *data, bytes);
}

}  // namespace ft::cuda
