// Softmax cross entropy, row by row.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/loops.h"
#include "runtime/backends/cpu/simd/element_type.h"

namespace ft::cpu {

// A row whose target is negative is left out: its loss and its gradients are 0. A target of n or more makes
// the loss NaN.
struct LossLoops {
  // logsumexp(logits) - logits[target] of one row. One function for each type of the logits, at
  // FloatIndex(dtype).
  double (*row_loss[kFloatTypes])(const void* logits, int64_t n, int64_t target);
  // Also result = scale * (softmax(logits) - onehot(target)), of the type of the logits; result may be
  // logits.
  double (*row_loss_grad[kFloatTypes])(const void* logits, int64_t n, int64_t target, float scale,
                                       void* result);
  // The gradient for logits begin ... begin + n - 1 of a row, given the log of the sum of exponentials of all
  // of it; in place.
  void (*partial_grad)(float* logits, int64_t begin, int64_t n, int64_t target, float log_sum_exp,
                       float scale);
};

FT_DECLARE_FOR_EVERY_ISA(LossLoops, kLoss)

}  // namespace ft::cpu
