// The exact sum of squares of gradients, and what is made of it.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/device_code/launch.h"
#include "runtime/base/dtype.h"

namespace ft::cuda {

struct SumSquaresArgs {
  const void* x;
  DType dtype;
  int64_t elements;
  const int64_t* earlier;  // kAccumulatorWords, or null; may be `sum`
  const float* factor;     // null: 1
  int64_t* sum;            // kAccumulatorWords, carries resolved
};

// The f64 sum of the squares of every kBlockElements elements, times the factor and rounded to f32, in the
// CPU's order, added exactly.
int SumSquares(const SumSquaresArgs& args, StreamHandle stream);

struct ClipCoefficientArgs {
  const int64_t* sum;
  const float* loss;    // may be null
  const float* scaler;  // [3], may be null
  const float* factor;  // may be null
  double max_norm;
  float* norm;
  float* coefficient;
};

int ClipCoefficient(const ClipCoefficientArgs& args, StreamHandle stream);

}  // namespace ft::cuda
