// The device behind --device=cuda, also for programs that were built without CUDA.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/backends/cuda/platform.h"
#include "runtime/device/device.h"
#include "runtime/device/host_kernels.h"
#include "runtime/kernels/rank_sum/cuda_device.h"

namespace ft::cuda {

// Whether this program was built with CUDA.
bool HasCuda();

struct CudaDeviceOptions {
  PlatformOptions platform = {};
  // What computes in host memory; must outlive the device. Null: plans that ask for it are refused.
  HostKernels* host_kernels = nullptr;
};

struct OpenedDevice {
  std::unique_ptr<Device> device = {};
  // What communicators want of it; both live as long as the device.
  Driver* driver = nullptr;
  RankSumLauncher rank_sum = nullptr;
  std::string pci_address = {};  // DeviceProperties::pci_address
  // Bytes of its memory that were in use before: by other processes, and where nothing says that without a
  // context, by the one of this process.
  uint64_t used_before = 0;
};

// For the `local_rank`-th rank on this host, with all kernels. Errors: FailedPrecondition, one line for the
// user: without CUDA, those of OpenPlatform, or when the device does not run the code that this program
// holds.
absl::StatusOr<OpenedDevice> OpenCudaDevice(int local_rank, const CudaDeviceOptions& options);

}  // namespace ft::cuda
