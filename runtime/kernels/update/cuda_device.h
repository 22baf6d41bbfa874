// What is beside the code of an update of weights: the numbers of a step, and stochastic rounding.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/device_code/launch.h"
#include "runtime/base/step_scalars.h"

namespace ft::cuda {

struct UpdateScalarsArgs {
  const float* coefficient;
  const float* lr;
  const int64_t* step;         // steps applied so far
  const float* inverse_ranks;  // null where no formula names it
  float* scalars;              // those without weight decay, then those with it
};

int UpdateScalars(const StepScalars& formulas, const UpdateScalarsArgs& args, StreamHandle stream);

// bf16[i] of `elements`: one of the neighbours of values[i], with the probability that keeps the mean.
// Element i draws from Philox (seed rng[0], stream, *step) as element first + i, `first` a multiple of 4.
struct RoundArgs {
  const float* values;
  void* bf16;
  int64_t elements;
  int64_t first;
  uint32_t stream;
  const int64_t* rng;
  const int64_t* step;
};

int RoundStochastically(const RoundArgs& args, StreamHandle stream);

}  // namespace ft::cuda
