// Adds elements of any float type to sums in f32. Included only by loops.
#pragma once

#include "runtime/backends/cpu/simd/half.h"

namespace ft::cpu::FT_ISA {

// sum[i] += x[begin + i] for i < n.
template <typename T>
inline __attribute__((always_inline)) void AddInto(const void* x, int64_t begin, int64_t n, float* sum) {
  const T* from = static_cast<const T*>(x) + begin;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) sum[i] += Load(from[i]);
}

// A piece is converted at once: the compiler's vectoriser knows no conversion instruction, and integer
// arithmetic for each element (element.h) would make this loop 3 to 6 times slower than that over f32.
template <>
inline __attribute__((always_inline)) void AddInto<Float16>(const void* x, int64_t begin, int64_t n,
                                                            float* sum) {
  constexpr int64_t kPiece = 512;
  alignas(64) float piece[kPiece];
  for (int64_t i = 0, m; i < n; i += m) {
    m = n - i < kPiece ? n - i : kPiece;
    LoadFloats(static_cast<const Float16*>(x) + begin + i, m, piece);
    AddInto<float>(piece, 0, m, sum + i);
  }
}

}  // namespace ft::cpu::FT_ISA
