// What device_code/gpu.h takes for the hardware (FT_EXECUTION_MODEL): the execution model, and launches in
// it.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <tuple>
#include <utility>

#include "runtime/backends/cuda/device_code/launch.h"
#include "test/doubles/cuda/execution_model.h"
#include "test/doubles/cuda/tensor_core.h"

// An emulated stream, as far as a launch sees it. What is a cudaStream_t to CUDA points at one of these.
struct CUstream_st {
  // Runs `work` now, or keeps it while the stream is being captured. A cudaError_t: that of the work, or of
  // enqueuing it.
  virtual int Submit(const char* what, std::function<int()> work) = 0;

 protected:
  ~CUstream_st() = default;
};

namespace ft::cuda::emulation {

// In which order threads of a block start and blocks follow each other. Results must not depend on it.
enum class Order { kAscending, kDescending };
void SetOrder(Order order);  // of this thread's launches

// Runs or records `body`, one thread of the kernel at `kernel`. A cudaError_t; LastMessage says more.
int Enqueue(const LaunchShape& shape, StreamHandle stream, const void* kernel, std::function<void()> body);

// Runs work of a library, such as a matrix product, in the order of the stream.
int EnqueueHost(StreamHandle stream, const char* what, std::function<int()> work);

// The errors of CUDA's runtime that the emulation returns.
inline constexpr int kSuccess = 0, kInvalidValue = 1, kInvalidConfiguration = 9, kLaunchFailure = 719;

// Keeps what went wrong on this thread, and returns `error`.
int Fail(int error, std::string message);
std::string LastMessage();

}  // namespace ft::cuda::emulation

namespace ft::cuda {

inline uint64_t GlobalTimerNs() {
  return static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

template <typename T>
T* DynamicShared() {
  return static_cast<T*>(emulation::DynamicSharedMemory());
}

template <typename... Parameters, typename... Arguments>
int Launch(void (*kernel)(Parameters...), const LaunchShape& shape, StreamHandle stream,
           const Arguments&... arguments) {
  std::tuple<std::decay_t<Parameters>...> values(arguments...);
  return emulation::Enqueue(shape, stream, reinterpret_cast<const void*>(kernel),
                            [kernel, values = std::move(values)] { std::apply(kernel, values); });
}

}  // namespace ft::cuda
