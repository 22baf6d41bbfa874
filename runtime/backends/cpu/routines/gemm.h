// Matrix products.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/routines/routines.h"

namespace ft::cpu {

// A part of C = op(A) op(B): rows [row_begin, row_end) x columns [column_begin, column_end). All matrices are
// row-major and dense; op(A) is [m, k] and op(B) is [k, n].
struct GemmPart {
  const float* a;
  const float* b;
  const float* bias;  // [n], added to every row; nullptr for none
  float* c;
  int64_t m, n, k;
  bool transpose_a;  // A is [k, m]
  bool transpose_b;  // B is [n, k]
  bool accumulate;   // add to C; `bias` must be nullptr then
  int64_t row_begin, row_end, column_begin, column_end;
};

// Rows and columns of C that are computed at once: parts should begin at multiples of these.
inline constexpr int64_t kGemmRows = 14;
inline constexpr int64_t kGemmColumns = 32;

struct GemmRoutines {
  // c[i, j] += bias[j] for an m x n tile with row stride ldc.
  void (*add_bias)(float* c, int64_t ldc, const float* bias, int64_t m, int64_t n);
  // Computes a part. Every element is one chain of FMAs over k, cut in blocks of fixed length, so it does not
  // depend on how C is cut in parts. nullptr where the BLAS is as good.
  void (*product)(const GemmPart& part);
};

FT_DECLARE_FOR_EVERY_ISA(GemmRoutines, kGemm)

}  // namespace ft::cpu
