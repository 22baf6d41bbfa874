// Softmax cross entropy, row by row.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/routines/routines.h"

namespace ft::cpu {

struct LossRoutines {
  // logsumexp(logits) - logits[target] of one row; NaN when the target is not in [0, n).
  double (*row_loss)(const float* logits, int64_t n, int64_t target);
  // Also result = scale * (softmax(logits) - onehot(target)); result may be logits.
  double (*row_loss_grad)(const float* logits, int64_t n, int64_t target, float scale, float* result);
};

FT_DECLARE_FOR_EVERY_ISA(LossRoutines, kLoss)

}  // namespace ft::cpu
