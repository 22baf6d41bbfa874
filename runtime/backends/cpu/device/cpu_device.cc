#include "runtime/backends/cpu/device/cpu_device.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/backends/cpu/device/cpu_arena.h"

namespace ft {
namespace {

// Longer than a hand-over between running threads takes, shorter than the time slice that a waiting thread
// would steal.
constexpr int64_t kSpinNs = 50'000;

}  // namespace

absl::StatusOr<std::unique_ptr<Memory>> CpuDevice::Allocate(uint64_t bytes) {
  return AllocateCpuArena(bytes, options_.num_threads);
}

absl::StatusOr<std::unique_ptr<Stream>> CpuDevice::CreateStream(std::string name, size_t max_enqueued) {
  return CpuStream::Start(std::move(name), max_enqueued, options_.may_spin ? kSpinNs : 0, failure_);
}

std::unique_ptr<Event> CpuDevice::CreateEvent() { return std::make_unique<CpuEvent>(); }

absl::Status CpuDevice::Write(void* device_data, const void* host_data, uint64_t bytes) {
  std::memcpy(device_data, host_data, bytes);
  return absl::OkStatus();
}

absl::Status CpuDevice::Read(void* host_data, const void* device_data, uint64_t bytes) {
  std::memcpy(host_data, device_data, bytes);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> CpuDevice::CreateKernel(const std::string& name,
                                                                const KernelOperands& operands,
                                                                const KernelAttributes& attributes) {
  const KernelFactory factory = kernels_.Find(name);
  if (factory == nullptr)
    return absl::FailedPreconditionError(absl::StrCat("the cpu device has no kernel '", name, "'"));
  return factory(operands, attributes, KernelEnvironment{.num_threads = options_.num_threads});
}

}  // namespace ft
