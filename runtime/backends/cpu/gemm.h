// C = op(A) op(B), or C += ..., or C = ... + bias, in parallel over blocks of C.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/loops.h"
#include "runtime/base/dtype.h"

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

// Elements in memory, f32, bf16 or f16. A plain pointer is one to f32, nullptr stands for none.
struct GemmInput {
  GemmInput(const float* x) : data(x) {}
  GemmInput(const void* x, DType type) : data(x), dtype(type) {}

  const void* data;
  DType dtype = DType::kF32;
};

struct GemmOutput {
  GemmOutput(float* x) : data(x) {}
  GemmOutput(void* x, DType type) : data(x), dtype(type) {}

  void* data;
  DType dtype = DType::kF32;
};

// A C row-major, dense, each operand with a type of its own; computed in f32, each element of C rounded once.
// `bias` is [n] or nullptr. Never allocates.
void Gemm(const Loops& loops, const GemmShape& shape, GemmInput a, GemmInput b, GemmInput bias, GemmOutput c,
          int num_threads);

}  // namespace ft::cpu
