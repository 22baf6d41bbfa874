// The same bits on every instruction set.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/loops.h"

namespace ft::cpu {

struct GradientNormLoops {
  // Sum of squares of elements [0, n), n <= kBlockElements, times `factor`, rounded to f32, in f64: element i
  // goes to lane i % 32, lanes are added as a binary tree.
  double (*block_sum_squares)(const float* x, int64_t n, float factor);
};

FT_DECLARE_FOR_EVERY_ISA(GradientNormLoops, kGradientNorm)

}  // namespace ft::cpu
