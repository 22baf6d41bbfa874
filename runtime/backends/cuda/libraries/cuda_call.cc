#include "runtime/backends/cuda/libraries/cuda_call.h"

#include <cuda.h>

#include "absl/strings/str_cat.h"

namespace ft::cuda {

std::string Describe(cudaError_t error) {
  return absl::StrCat(cudaGetErrorString(error), " (", cudaGetErrorName(error), ")");
}

absl::Status CudaFailure(cudaError_t error, const std::string& call, const std::string& file, int line) {
  // CUDA keeps the last error for whoever asks next, such as the launch of a kernel: it must not hear of
  // this one.
  cudaGetLastError();
  const std::string message =
      absl::StrCat(call, " failed: ", Describe(error), ", at ", file.substr(file.rfind('/') + 1), ":", line);
  return error == cudaErrorMemoryAllocation ? absl::ResourceExhaustedError(message)
                                            : absl::InternalError(message);
}

void* FindInDriver(const char* name) {
  constexpr unsigned kVersion = 12000;  // of its signature
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  if (cudaGetDriverEntryPointByVersion(name, &found, kVersion, cudaEnableDefault, &result) == cudaSuccess &&
      result == cudaDriverEntryPointSuccess)
    return found;
  cudaGetLastError();
  return nullptr;
}

bool DriverSaysHas(int attribute, int device) {
  using Get = CUresult(int*, CUdevice_attribute, CUdevice);
  static Get* const get = reinterpret_cast<Get*>(FindInDriver("cuDeviceGetAttribute"));
  int has = 0;
  return get != nullptr && get(&has, static_cast<CUdevice_attribute>(attribute), device) == CUDA_SUCCESS &&
         has != 0;
}

}  // namespace ft::cuda
