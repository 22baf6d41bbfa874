// Where this backend meets the outside: CUDA's runtime and NVIDIA's libraries, or the emulation of both. A
// program links one provider of OpenPlatform: ft_cuda_platform (built where nvcc is found) or
// ft_cuda_emulation (tests). One that is built without CUDA has neither (open_cuda_device.h).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/backends/cuda/code_loader.h"
#include "runtime/backends/cuda/driver.h"
#include "runtime/backends/cuda/fused_attention.h"
#include "runtime/backends/cuda/products.h"

namespace ft::cuda {

enum class AttentionChoice {
  kAuto,   // cuDNN; our own kernel for f32, and in deterministic mode for what cuDNN refuses
  kCudnn,  // what cuDNN refuses is an error
  kOwn,    // our own kernel; cuDNN is not loaded
};

struct PlatformOptions {
  bool allow_tf32 = false;  // fp32 matrix products on tensor cores, with 10 bits of precision
  AttentionChoice attention = AttentionChoice::kAuto;
  // Libraries use no algorithm that differs from run to run, nor choose one by timing.
  bool deterministic = false;
  // Several ranks of a host may compute on one device.
  bool share_devices = false;
};

// Names for what the host enqueues, shown by profilers.
class ProfilerRanges {
 public:
  virtual ~ProfilerRanges() = default;
  virtual void Push(const char* name) = 0;  // ranges nest
  virtual void Pop() = 0;
};

struct Platform {
  std::unique_ptr<Driver> driver;
  int device = 0;  // its number
  DeviceProperties properties;
  std::unique_ptr<Products> products;
  std::unique_ptr<FusedAttention> attention;  // null with kOwn
  std::unique_ptr<CodeLoader> code;           // null where the code of plans cannot be run
  std::unique_ptr<ProfilerRanges> ranges;     // null unless a profiler listens
  std::function<double()> utilization;        // percent, negative when unknown; empty without NVML
};

// Checks driver and device, makes the device of this rank of the host the calling thread's, loads libraries.
// Errors: FailedPrecondition, one line for the user, when there is no driver or device, when it is too old
// (compute capability below 8.0), when there are several devices, yet fewer than `local_rank` needs, and they
// may not be shared (device/choose_device.h), when a library cannot be loaded.
absl::StatusOr<Platform> OpenPlatform(int local_rank, const PlatformOptions& options);

}  // namespace ft::cuda
