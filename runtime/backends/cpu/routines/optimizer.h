// What is around the update of parameters, in f32. All of it gives the same bits on every instruction set.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/routines/routines.h"

namespace ft::cpu {

struct OptimizerRoutines {
  // Sum of squares of elements [0, n), n <= kBlockElements, in f64: element i goes to lane i % 32, lanes are
  // added as a binary tree.
  double (*block_sum_squares)(const float* x, int64_t n);
  void (*fill)(float* x, float value, int64_t begin, int64_t end);
};

FT_DECLARE_FOR_EVERY_ISA(OptimizerRoutines, kOptimizer)

}  // namespace ft::cpu
