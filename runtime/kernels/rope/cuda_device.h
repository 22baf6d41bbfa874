// Rotary position embedding.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/device_code/launch.h"
#include "runtime/base/dtype.h"

namespace ft::cuda {

inline constexpr int kMaxFrequencies = 128;
// Sequences whose same position one thread rotates with one computation of sines, and how many there can be.
inline constexpr int64_t kRopeSequences = 8;
inline constexpr int64_t kMaxRopeBatch = kRopeSequences * 65535;

// x and r are [batch, positions, heads, 2 half]. Pairs first ... first + count - 1 of every head are rotated:
// pair i (elements i and half + i) at position t by t * quarter_turns[i - first] * pi / 2. r may be x.
struct RopeArgs {
  const void* x;
  void* r;
  int64_t batch;
  int64_t positions;
  int64_t heads;
  int64_t half;
  int64_t first;
  int64_t count;  // up to kMaxFrequencies
  bool inverse;
  double quarter_turns[kMaxFrequencies];  // per position
};

// Enqueues on `stream`; a cudaError_t as int, 0 for success.
int Rope(const RopeArgs& args, DType dtype, StreamHandle stream);

}  // namespace ft::cuda
