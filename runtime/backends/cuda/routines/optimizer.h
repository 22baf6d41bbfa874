// AdamW, Adam and SGD on a slice of a unit, in one pass: in f32, each operation rounded by itself in the
// order of the CPU's routines.
#pragma once

#include <cstdint>

#include "runtime/base/dtype.h"

struct CUstream_st;

namespace ft::cuda {

using StreamHandle = CUstream_st*;

// Streams of stochastic rounding are this plus a number that the plan gives each unit (runtime/base/philox.h
// has the others).
inline constexpr uint32_t kFirstRoundingStream = 0x80000000u;

// Element i of the gradient belongs to element i of everything else.
struct UpdateArgs {
  const void* gradient;
  DType gradient_dtype;
  float* parameter;
  float* states[2];          // null where the rule has none
  void* copy;                // of the parameter, rounded; null when there is none
  DType copy_dtype;          // bf16 or f16
  const float* coefficient;  // of the gradient; NaN: nothing is touched
  const float* lr;
  const int64_t* step;  // steps applied so far
  int64_t flat_begin;   // the element of the unit at which the slice begins
  // With `stochastic`, the bf16 copy is rounded up with the probability that keeps its mean. Element i of the
  // unit at step s draws from Philox (seed, stream, s).
  bool stochastic;
  uint32_t stream;
  uint64_t seed;
};

// Parameters' parts of the slice, with the thread blocks that work on them: as many as fit in a kernel's
// arguments.
struct SegmentBatch {
  static constexpr int kMost = 150;

  int count = 0;
  int blocks = 0;        // of all segments
  int64_t begin[kMost];  // elements of the slice
  int64_t end[kMost];
  int first_block[kMost];                   // ascending
  uint32_t decays[(kMost + 31) / 32] = {};  // bit i: weight decay applies to segment i

  // False when the batch is full; begin < end.
  bool Add(int64_t segment_begin, int64_t segment_end, bool decay);
};

struct AdamSettings {
  double beta1, beta2, eps, weight_decay;
  bool decoupled;  // AdamW
};

struct SgdSettings {
  double momentum, weight_decay;  // momentum 0: no state
  bool nesterov;
};

// One launch.
int Adam(const UpdateArgs& args, const AdamSettings& settings, const SegmentBatch& batch,
         StreamHandle stream);
int Sgd(const UpdateArgs& args, const SgdSettings& settings, const SegmentBatch& batch, StreamHandle stream);

}  // namespace ft::cuda
