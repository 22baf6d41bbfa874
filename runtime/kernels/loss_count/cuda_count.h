// Counting targets, by one block.
#pragma once

#include "runtime/backends/cuda/device_code/reduce.h"

namespace ft::cuda {

inline constexpr int kOneBlock = 1024;  // threads of kernels that are one block

// Targets that are not negative; all threads of the block get the result.
__device__ __forceinline__ int CountTargets(const int32_t* targets, int rows) {
  int count = 0;
#pragma unroll 8
  for (int i = static_cast<int>(threadIdx.x); i < rows; i += kOneBlock) count += targets[i] >= 0 ? 1 : 0;
  return BlockReduce<Sum, kOneBlock>(count);
}

}  // namespace ft::cuda
