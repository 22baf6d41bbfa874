// Softmax cross entropy, row by row.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/loops.h"

namespace ft::cpu {

// A row whose target is negative is left out: its loss and its gradients are 0. A target of n or more makes
// the loss NaN.
struct LossLoops {
  // logsumexp(logits) - logits[target] of one row.
  double (*row_loss)(const float* logits, int64_t n, int64_t target);
  // The logits also become scale * (softmax(logits) - onehot(target)).
  double (*row_loss_grad)(float* logits, int64_t n, int64_t target, float scale);
  // The gradient for logits begin ... begin + n - 1 of a row, given the log of the sum of exponentials of all
  // of it; in place.
  void (*partial_grad)(float* logits, int64_t begin, int64_t n, int64_t target, float log_sum_exp,
                       float scale);
};

FT_DECLARE_FOR_EVERY_ISA(LossLoops, kLoss)

}  // namespace ft::cpu
