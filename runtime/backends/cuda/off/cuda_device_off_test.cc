// Links nothing of CUDA but ft_cuda_off: as a program that was built without it.
#include "gtest/gtest.h"
#include "runtime/backends/cuda/device/open_cuda_device.h"

namespace ft::cuda {
namespace {

TEST(CudaOffTest, OpeningTheDeviceSaysWhyAndWhatToDo) {
  EXPECT_EQ(OpenCudaDevice(0, {}).status(),
            absl::FailedPreconditionError(
                "this ftexec was built without CUDA (no nvcc or no driver of a GPU was found when it was "
                "built); use "
                "--device=cpu, install the package ft-cuda, or rebuild where nvcc is on PATH with: cmake "
                "-DFT_CUDA=on"));
}

}  // namespace
}  // namespace ft::cuda
