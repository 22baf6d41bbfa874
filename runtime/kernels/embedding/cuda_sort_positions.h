// Positions sorted by the id they hold, stably.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/device_code/launch.h"

namespace ft::cuda {

struct SortPositionsArgs {
  const int32_t* ids;    // [positions]
  int64_t positions;     // below 2^31
  int64_t id_limit;      // ids outside [0, id_limit) count as id_limit
  uint64_t* entries[2];  // [positions] each: id << 32 | position
  uint32_t* counters;    // [256, cuda_workspace::SortTiles(positions)]
};

// In which of the two buffers the sorted entries will be.
int SortedBuffer(const SortPositionsArgs& args);

int SortPositions(const SortPositionsArgs& args, StreamHandle stream);

}  // namespace ft::cuda
