// Sums and maxima over a warp and over a block, always in the same order.
#pragma once

#include "runtime/backends/cuda/device_code/gpu.h"

namespace ft::cuda {

struct Sum {
  template <typename T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a + b;
  }
  template <typename T>
  __device__ __forceinline__ static T Neutral() {
    return T(0);
  }
};

struct Max {
  template <typename T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a < b ? b : a;
  }
  // Floats only.
  template <typename T>
  __device__ __forceinline__ static T Neutral() {
    return T(-INFINITY);
  }
};

// Every lane gets the result. All 32 lanes take part.
template <typename Op, typename T>
__device__ __forceinline__ T WarpReduce(T value, Op op = {}) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    value = op(value, __shfl_xor_sync(kAllLanes, value, offset));
  return value;
}

// Every thread gets the result. All threads of a one-dimensional block of whole warps take part; kThreads is
// its size.
template <typename Op, int kThreads, typename T>
__device__ __forceinline__ T BlockReduce(T value, Op op = {}) {
  static_assert(kThreads % kWarp == 0 && kThreads <= kWarp * kWarp);
  constexpr int kWarps = kThreads / kWarp;
  value = WarpReduce(value, op);
  if constexpr (kWarps == 1) return value;
  __shared__ T partials[kWarps];
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  if (lane == 0) partials[warp] = value;
  __syncthreads();
  value = WarpReduce(lane < kWarps ? partials[lane] : Op::template Neutral<T>(), op);
  __syncthreads();  // partials may be written again at once
  return value;
}

}  // namespace ft::cuda
