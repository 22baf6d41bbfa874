// Threads that work on one row together: a warp of a block of several, or a whole block whose size is known
// at run time only.
#pragma once

#include "runtime/backends/cuda/routines/reduce.h"

namespace ft::cuda {

// Sums over the block, two at a time, the same in every thread. `partials` is shared memory; between two uses
// of it there must be another sum with another or another __syncthreads.
struct GroupPartials {
  float first[kWarp];
  float second[kWarp];
};

template <bool kWarpRows>
__device__ __forceinline__ float GroupSum(float value, GroupPartials& partials) {
  value = WarpReduce<Sum>(value);
  if constexpr (kWarpRows) return value;
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  if (lane == 0) partials.first[warp] = value;
  __syncthreads();
  return WarpReduce<Sum>(lane < warps ? partials.first[lane] : 0.0f);
}

template <bool kWarpRows>
__device__ __forceinline__ void GroupSums(float& first, float& second, GroupPartials& partials) {
  first = WarpReduce<Sum>(first);
  second = WarpReduce<Sum>(second);
  if constexpr (kWarpRows) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  if (lane == 0) {
    partials.first[warp] = first;
    partials.second[warp] = second;
  }
  __syncthreads();
  first = WarpReduce<Sum>(lane < warps ? partials.first[lane] : 0.0f);
  second = WarpReduce<Sum>(lane < warps ? partials.second[lane] : 0.0f);
}

}  // namespace ft::cuda
