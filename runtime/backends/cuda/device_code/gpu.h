// The door to the GPU's execution model for everything in this folder. A .cu file here is compiled twice: by
// nvcc for the device, and as plain C++ for tests, which run the very same code on the host: whoever compiles
// it so names the header that stands in for the hardware, FT_EXECUTION_MODEL. So device code uses nothing
// that is not named here:
//   __global__ __device__ __shared__ __launch_bounds__ __restrict__; threadIdx blockIdx blockDim gridDim (1-D
//   or more); __syncthreads, __syncwarp, __syncthreads_or / _and / _count; __shfl_sync, _up_, _down_, _xor_
//   (32-bit and 64-bit types), __ballot_sync, __any_sync, __all_sync, __activemask; atomicAdd / Max / Or on
//   int, unsigned and unsigned long long (never floats: sums must not depend on the order of arrival);
//   __threadfence, __threadfence_block, __threadfence_system; __ldg; the float and double functions of
//   <cmath> plus rsqrtf; __clz, __clzll, __ffs, __popc, __popcll, __umulhi, __umul64hi; __float_as_uint and
//   its kind; __fmaf_rn, __fmul_rn, __fadd_rn, __fsub_rn, __fdiv_rn, __fsqrt_rn, __fma_rn, __dmul_rn,
//   __dadd_rn; GlobalTimerNs; what tensor_core.h has; __host__ for what the host calls too.
// Dynamic shared memory comes from DynamicShared, launches go through Launch: no <<<>>>.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/backends/cuda/device_code/launch.h"

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#elif defined(FT_EXECUTION_MODEL)
#include FT_EXECUTION_MODEL
#else
#error "device code is compiled by nvcc, or with FT_EXECUTION_MODEL"
#endif

namespace ft::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xFFFFFFFFu;

#if defined(__CUDACC__)

// The block's dynamic shared memory, 16-byte aligned.
template <typename T>
__device__ __forceinline__ T* DynamicShared() {
  extern __shared__ __align__(16) unsigned char ft_dynamic_shared[];
  return reinterpret_cast<T*>(ft_dynamic_shared);
}

// Nanoseconds of a clock that all multiprocessors share; it moves in steps of up to a microsecond.
__device__ __forceinline__ uint64_t GlobalTimerNs() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}

// Enqueues a kernel. Returns a cudaError_t as int, 0 for success.
template <typename... Parameters, typename... Arguments>
int Launch(void (*kernel)(Parameters...), const LaunchShape& shape, StreamHandle stream,
           const Arguments&... arguments) {
  constexpr size_t kWithoutAsking = 32 << 10;  // of the 48 KiB that static shared memory is part of
  if (shape.shared_bytes > kWithoutAsking) {
    const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                   static_cast<int>(shape.shared_bytes));
    if (error != cudaSuccess) return static_cast<int>(error);
  }
  kernel<<<dim3(shape.grid_x, shape.grid_y, shape.grid_z), dim3(shape.block_x, shape.block_y),
           shape.shared_bytes, stream>>>(arguments...);
  return static_cast<int>(cudaGetLastError());
}

#endif  // otherwise the stand-in has Launch, DynamicShared, GlobalTimerNs and tensor_core.h's, with these
        // signatures

}  // namespace ft::cuda
