// Sums, maxima and minima over any dimensions. Enqueues on `stream` and returns a cudaError_t as int, 0 for
// success.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/routines/launch.h"
#include "runtime/backends/cuda/routines/loops.h"
#include "runtime/base/dtype.h"

namespace ft::cuda {

enum class Reducer { kSum, kMax, kMin };

// r[i] is of the `count` elements of x that the loops over `reduced` visit from where those over `kept` are
// at their i-th place. Floats are added in f64 and rounded to f32 and from there to the type, integers wrap
// around; a maximum or minimum is NaN where an element is. The order of additions depends on shapes alone.
struct ReduceArgs {
  const void* x;
  void* r;
  DType result;      // of r: any float for floats, x's type for integers
  int64_t elements;  // of r
  int64_t count;     // positive
  Loops kept;
  Loops reduced;
};
// x is f32, bf16, f16, i32 or i64.
int Reduce(const ReduceArgs& args, Reducer reducer, DType dtype, StreamHandle stream);

}  // namespace ft::cuda
