// Attention through cuDNN's fused engines.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/backends/cuda/fused_attention.h"

namespace ft::cuda {

struct CudnnApi;

// On the calling thread's device, whose `properties` these are. Plans are made once per spec. A kernel's
// first launch with an address set allocates on the host, every later one with the same addresses does not.
//
// Forward, dk and dv are the same bits in every run. dq is added up by float atomics unless `deterministic`:
// then an engine that is known to add in order (see QueryGradient), and a spec that has none is
// Unimplemented, so that our own kernel, which always adds in order, computes it.
//
// Errors: FailedPrecondition when cuDNN cannot be loaded, is too old, or does not know the device.
absl::StatusOr<std::unique_ptr<FusedAttention>> CreateCudnnAttention(const DeviceProperties& properties,
                                                                     bool deterministic);

// With functions of the caller's choice.
absl::StatusOr<std::unique_ptr<FusedAttention>> CreateCudnnAttention(const CudnnApi& api,
                                                                     const DeviceProperties& properties,
                                                                     bool deterministic);

}  // namespace ft::cuda
