// The update of parameters and what it needs: sums of squares, AdamW, Adam and SGD, in f32. All of it gives
// the same bits on every instruction set.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/routines/routines.h"

namespace ft::cpu {

// Element i of the gradient belongs to element i of everything else.
struct AdamArgs {
  const float* gradient;
  float* parameter;
  float* exp_avg;
  float* exp_avg_sq;
};

// Factors of one step, rounded to f32 once.
struct AdamFactors {
  float clip;   // coefficient of the gradient
  float decay;  // adamw: 1 - lr * weight_decay, or 1; adam: weight_decay, or 0
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
  float sqrt_correction2;  // sqrt(1 - beta2^t)
  float eps;
  float step_size;  // lr / (1 - beta1^t)
};

struct SgdArgs {
  const float* gradient;
  float* parameter;
  float* buffer;  // of momentum; not looked at by sgd
};

struct SgdFactors {
  float clip;   // coefficient of the gradient
  float decay;  // weight_decay, or 0
  float momentum;
  float lr;
};

struct OptimizerRoutines {
  void (*adamw)(const AdamArgs&, const AdamFactors&, int64_t begin, int64_t end);
  void (*adam)(const AdamArgs&, const AdamFactors&, int64_t begin, int64_t end);
  void (*sgd)(const SgdArgs&, const SgdFactors&, int64_t begin, int64_t end);
  void (*sgd_momentum)(const SgdArgs&, const SgdFactors&, int64_t begin, int64_t end);
  void (*sgd_nesterov)(const SgdArgs&, const SgdFactors&, int64_t begin, int64_t end);
  // Sum of squares of elements [0, n), n <= kBlockElements, in f64: element i goes to lane i % 32, lanes are
  // added as a binary tree.
  double (*block_sum_squares)(const float* x, int64_t n);
  void (*fill)(float* x, float value, int64_t begin, int64_t end);
};

FT_DECLARE_FOR_EVERY_ISA(OptimizerRoutines, kOptimizer)

}  // namespace ft::cpu
