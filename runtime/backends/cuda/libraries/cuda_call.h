// Calls of CUDA's runtime, and of the driver behind it, whose errors are statuses.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace ft::cuda {

// "out of memory (cudaErrorMemoryAllocation)".
std::string Describe(cudaError_t error);

// Of a call that failed: ResourceExhausted for want of memory, Internal else. CUDA forgets the error.
absl::Status CudaFailure(cudaError_t error, const std::string& call, const std::string& file, int line);

// Returns from the calling function when `call` fails. `...`: the call for the message, as for StrFormat.
#define FT_CUDA_CALL(call, ...)                                                       \
  do {                                                                                \
    if (const cudaError_t ft_error = (call); ft_error != cudaSuccess)                 \
      return CudaFailure(ft_error, absl::StrFormat(__VA_ARGS__), __FILE__, __LINE__); \
  } while (false)

// The same for the driver, whose errors have the numbers of the runtime's.
#define FT_DRIVER_CALL(call, ...) FT_CUDA_CALL(static_cast<cudaError_t>(call), __VA_ARGS__)

// A function that only the driver has, by its name there; null where this driver has none.
void* FindInDriver(const char* name);

// Whether a device has something, a CUdevice_attribute, by the driver's account.
bool DriverSaysHas(int attribute, int device);

template <typename Function>
void FindInDriver(const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(FindInDriver(name));
}

}  // namespace ft::cuda
