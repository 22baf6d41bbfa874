// What a launch needs to know, for code that includes no header of CUDA.
#pragma once

#include <cstddef>

struct CUstream_st;  // what a cudaStream_t points at

namespace ft::cuda {

// cudaStream_t.
using StreamHandle = CUstream_st*;

// Extents of a launch. `shared_bytes` is dynamic shared memory per block.
struct LaunchShape {
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1;
  size_t shared_bytes = 0;
};

}  // namespace ft::cuda
