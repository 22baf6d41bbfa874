#include "runtime/backends/cuda/device/open_cuda_device.h"

#include <utility>

#include "runtime/backends/cuda/device/cuda_device.h"
#include "runtime/backends/cuda/register.h"
#include "runtime/base/status_macros.h"

namespace ft::cuda {

bool HasCuda() { return true; }

absl::StatusOr<OpenedDevice> OpenCudaDevice(int local_rank, const CudaDeviceOptions& options) {
  FT_ASSIGN_OR_RETURN(Platform platform, OpenPlatform(local_rank, options.platform));
  Driver* const driver = platform.driver.get();
  OpenedDevice opened{.driver = driver, .rank_sum = &RankSum, .pci_address = platform.properties.pci_address};
  if (platform.properties.used_bytes.has_value()) {
    opened.used_before = *platform.properties.used_bytes;
  } else {
    FT_ASSIGN_OR_RETURN(const FreeMemory memory, driver->MemoryInfo());
    opened.used_before = memory.total - memory.free;
  }
  KernelTable kernels;
  RegisterCudaKernels(kernels);
  FT_ASSIGN_OR_RETURN(opened.device, CudaDevice::Create(std::move(platform), std::move(kernels), options));
  return opened;
}

}  // namespace ft::cuda
