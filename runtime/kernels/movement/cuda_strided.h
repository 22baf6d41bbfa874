// Moving boxes of elements. Enqueues on `stream` and returns a cudaError_t as int, 0 for success.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/device_code/launch.h"
#include "runtime/backends/cuda/device_code/loops.h"

namespace ft::cuda {

// to[i . to_strides] = from[i . from_strides] for all i below the loops' extents, in units: strides of `to`
// are the loops'. No two units have one place there; a stride of `from` may be 0.
struct StridedArgs {
  const void* from;
  void* to;
  Loops loops;
  int64_t from_strides[kMostLoops];
  int64_t units;
};
// A unit is 1, 2, 4, 8 or 16 bytes, and divides both addresses.
int CopyStrided(const StridedArgs& args, int unit_bytes, StreamHandle stream);

}  // namespace ft::cuda
