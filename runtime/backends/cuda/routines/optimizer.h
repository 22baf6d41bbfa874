// AdamW, Adam and SGD on a slice of a unit, in one pass: in f32, each operation rounded by itself in the
// order of the CPU's routines.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/routines/launch.h"
#include "runtime/base/dtype.h"

namespace ft::cuda {

// Element i of the gradient belongs to element i of everything else.
struct UpdateArgs {
  const void* gradient;
  DType gradient_dtype;
  void* parameter;
  DType parameter_dtype;     // f32 or bf16
  float* states[2];          // null where the rule has none
  void* copy;                // of an f32 parameter, rounded; null when there is none
  DType copy_dtype;          // bf16 or f16
  const float* coefficient;  // of the gradient; NaN: only the copy is written, of the parameter as it is
  const float* lr;
  const int64_t* step;  // steps applied so far
  // Not null: a bf16 parameter is rounded to one of its neighbours with the probability that keeps the mean.
  // Element i of a parameter draws from Philox (seed rng[0], the parameter's stream, step).
  const int64_t* rng;
};

// Parameters' parts of the slice, with the thread blocks that work on them: as many as fit in a kernel's
// arguments.
struct SegmentBatch {
  static constexpr int kMost = 150;

  int count = 0;
  int blocks = 0;        // of all segments
  int64_t skipped = 0;   // of segment 0's parameter, elements that lie before the slice
  int64_t begin[kMost];  // elements of the slice
  int64_t end[kMost];
  int first_block[kMost];                   // ascending
  uint32_t streams[kMost];                  // of stochastic rounding
  uint32_t decays[(kMost + 31) / 32] = {};  // bit i: weight decay applies to segment i

  // False when the batch is full; begin < end. Only the slice's first segment has `before` other than 0.
  bool Add(int64_t segment_begin, int64_t segment_end, int64_t before, bool decay, uint32_t stream);
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
