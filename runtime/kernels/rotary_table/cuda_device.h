// Cosines and sines of rotary positions.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/device_code/launch.h"

namespace ft::cuda {

inline constexpr int kMaxFrequencies = 128;

// Columns first ... first + count - 1 of cosine and sine, [positions, half]: of t * quarter_turns[i - first]
// * pi / 2 in row t and column i, times scale.
struct RotaryTableArgs {
  float* cosine;
  float* sine;
  int64_t positions;
  int64_t half;
  int64_t first;
  int64_t count;  // up to kMaxFrequencies
  float scale;
  double quarter_turns[kMaxFrequencies];  // per position
};

// Enqueues on `stream`; a cudaError_t as int, 0 for success.
int RotaryTable(const RotaryTableArgs& args, StreamHandle stream);

}  // namespace ft::cuda
