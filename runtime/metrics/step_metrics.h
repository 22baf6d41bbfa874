// What is known about a training step once it is done.
#pragma once

#include <cstdint>

namespace ft {

struct StepMetrics {
  int64_t step = 0;          // from 0, as in --shuffle=off's formula
  double loss = 0;           // mean over all ranks, before the update
  double grad_norm = 0;      // global L2 norm before clipping
  double lr = 0;             // used by this step's update
  double tokens_per_s = 0;   // over all ranks
  double step_ms = 0;        // wall time of the step, milliseconds
  uint64_t arena_bytes = 0;  // device arena of this rank
};

}  // namespace ft
