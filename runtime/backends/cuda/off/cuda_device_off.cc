// --device=cuda in a program that was built without CUDA: no kernels, no makers, one line.
#include "runtime/backends/cuda/device/open_cuda_device.h"

namespace ft::cuda {

bool HasCuda() { return false; }

absl::StatusOr<OpenedDevice> OpenCudaDevice(int local_rank, const CudaDeviceOptions& options) {
  return absl::FailedPreconditionError(
      "this ftexec was built without CUDA (no nvcc or no driver of a GPU was found when it was built); use "
      "--device=cpu, install the package ft-cuda, or rebuild where nvcc is on PATH with: cmake -DFT_CUDA=on");
}

}  // namespace ft::cuda
