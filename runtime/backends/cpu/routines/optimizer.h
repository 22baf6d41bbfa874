// The update of parameters and what it needs: sums of squares and AdamW. All of it gives the same bits on
// every instruction set.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/routines/routines.h"

namespace ft::cpu {

struct AdamwArgs {
  const float* gradient;
  float* parameter;
  float* exp_avg;
  float* exp_avg_sq;
};

// Factors of one step, rounded to f32 once.
struct AdamwFactors {
  float clip;   // coefficient of the gradient
  float decay;  // 1 - lr * weight_decay, or 1
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
  float sqrt_correction2;  // sqrt(1 - beta2^t)
  float eps;
  float step_size;  // lr / (1 - beta1^t)
};

struct OptimizerRoutines {
  void (*adamw)(const AdamwArgs&, const AdamwFactors&, int64_t begin, int64_t end);
  // Sum of squares of elements [0, n), n <= kBlockElements, in f64: element i goes to lane i % 32, lanes are
  // added as a binary tree.
  double (*block_sum_squares)(const float* x, int64_t n);
  void (*fill)(float* x, float value, int64_t begin, int64_t end);
};

FT_DECLARE_FOR_EVERY_ISA(OptimizerRoutines, kOptimizer)

}  // namespace ft::cpu
