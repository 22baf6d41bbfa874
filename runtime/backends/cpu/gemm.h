// C = op(A) op(B), or C += ..., or C = ... + bias, in parallel over blocks of C.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/routines/routines.h"

namespace ft::cpu {

// All matrices are row-major. op(A) is [m, k]: A itself, or the transpose of A [k, m]. op(B) is [k, n], or of
// B [n, k].
struct GemmShape {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;  // add to C instead of overwriting it
};

// A C row-major, dense. `bias` is [n] or nullptr. Never allocates.
void Gemm(const Routines& routines, const GemmShape& shape, const float* a, const float* b, const float* bias,
          float* c, int num_threads);

}  // namespace ft::cpu
