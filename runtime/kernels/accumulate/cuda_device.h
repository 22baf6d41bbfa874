// Sums over micro-steps, element by element, in f32 and rounded to their type.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/device_code/launch.h"
#include "runtime/base/dtype.h"

namespace ft::cuda {

struct AccumulateArgs {
  const void* x;
  void* state;
  void* result;  // accumulated only; may be x
  DType dtype;   // of all of them
  int64_t elements;
};

// state += x.
int Accumulate(const AccumulateArgs& args, StreamHandle stream);

// result = state + x; state = 0.
int Accumulated(const AccumulateArgs& args, StreamHandle stream);

}  // namespace ft::cuda
