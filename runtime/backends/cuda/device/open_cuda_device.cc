#include "runtime/backends/cuda/device/open_cuda_device.h"

#include <utility>

#include "runtime/backends/cuda/device/cuda_device.h"
#include "runtime/backends/cuda/register.h"
#include "runtime/base/status_macros.h"

namespace ft::cuda {

absl::StatusOr<OpenedDevice> OpenCudaDevice(int local_rank, const CudaDeviceOptions& options) {
  FT_ASSIGN_OR_RETURN(Platform platform, OpenPlatform(local_rank, options.platform));
  Driver* const driver = platform.driver.get();
  KernelTable kernels;
  RegisterCudaKernels(kernels);
  FT_ASSIGN_OR_RETURN(std::unique_ptr<CudaDevice> device,
                      CudaDevice::Create(std::move(platform), std::move(kernels), options));
  return OpenedDevice{.device = std::move(device), .driver = driver, .rank_sum = &RankSum};
}

}  // namespace ft::cuda
