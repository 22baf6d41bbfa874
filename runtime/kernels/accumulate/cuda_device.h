// Sums over micro-steps, element by element, in f32 and rounded once.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/device_code/launch.h"
#include "runtime/base/dtype.h"

namespace ft::cuda {

// All of i64, or each of a float type.
struct AccumulateArgs {
  const void* x;  // nullptr: the state has all
  void* state;
  void* result;  // nullptr: the sum stays in the state; may be x
  DType x_dtype, state_dtype, result_dtype;
  int64_t elements;
};

// state += x, or with a result: result = state + x; state = 0.
int Accumulate(const AccumulateArgs& args, StreamHandle stream);

}  // namespace ft::cuda
