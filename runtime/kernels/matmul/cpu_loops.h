// Matrix products.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/loops.h"
#include "runtime/base/dtype.h"

namespace ft::cpu {

// A part of C = op(A) op(B): rows [row_begin, row_end) x columns [column_begin, column_end). All matrices are
// row-major and dense, of type f32, bf16 or f16; op(A) is [m, k] and op(B) is [k, n].
struct GemmPart {
  const void* a;
  const void* b;
  const void* bias;  // [n], added to every row; nullptr for none
  void* c;
  DType a_type, b_type, bias_type, c_type;
  int64_t m, n, k;
  bool transpose_a;  // A is [k, m]
  bool transpose_b;  // B is [n, k]
  bool accumulate;   // add to C
  int64_t row_begin, row_end, column_begin, column_end;
  void* scratch;  // kScratchBytes of the calling thread, aligned to 64 bytes
};

// Memory that a thread needs for a part of a product, or for a tile of attention.
inline constexpr int64_t kScratchBytes = int64_t{4} << 20;

// Where an instruction set multiplies bf16, a product of which one operand is bf16 and the other bf16 or f32,
// which is rounded to it, is one of bf16.
static constexpr bool IsBf16Product(DType a, DType b) {
  return (a == DType::kBF16 || b == DType::kBF16) && a != DType::kF16 && b != DType::kF16;
}

struct GemmLoops {
  // c[i, j] += bias[j] for an m x n tile with row stride ldc.
  void (*add_bias)(float* c, int64_t ldc, const float* bias, int64_t m, int64_t n);
  // Computes a part. Every element is one chain of sums over k in f32, rounded to C's type at its end, so it
  // does not depend on how C is cut in parts. In products of bf16 VDPBF16PS takes two elements of k at a time
  // and TDPBF16PS 32.
  void (*product)(const GemmPart& part);
  // Rows, of other products than those of bf16 and of those, and columns of C that are computed at once:
  // parts should begin at multiples of these.
  int64_t rows, bf16_rows, columns;
  // Where all is f32, the BLAS is at least as good.
  bool blas_for_f32;
  // What the machine can do at best: multiply-adds in registers, of f32 and of bf16 (nullptr where there are
  // none). Returns how many floating-point operations that was.
  double (*peak_f32)(int64_t iterations);
  double (*peak_bf16)(int64_t iterations);
};

FT_DECLARE_FOR_EVERY_ISA(GemmLoops, kGemm)

}  // namespace ft::cpu
