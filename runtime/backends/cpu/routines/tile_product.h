// Products of small tiles that lie in the cache, for one instruction set. Included only by routines.
#pragma once

#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "runtime/backends/cpu/routines/vector_math.h"

namespace ft::cpu::FT_ISA {

#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
inline constexpr int kTileRows = 6, kTileVectors = 4;  // 24 sums and 4 values of b of the 32 registers
#elif defined(__AVX2__)
inline constexpr int kLanes = 8;
inline constexpr int kTileRows = 6, kTileVectors = 2;  // 12 + 2 of 16
#else
inline constexpr int kLanes = 4;
inline constexpr int kTileRows = 4, kTileVectors = 2;
#endif

using Vector __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias)) = float;

FT_INLINE Vector Load(const float* x) { return *reinterpret_cast<const Vector*>(x); }
FT_INLINE void Store(float* x, Vector v) { *reinterpret_cast<Vector*>(x) = v; }
FT_INLINE Vector MultiplyAdd(float a, Vector b, Vector c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(_mm512_set1_ps(a), b, c);
#elif defined(__AVX2__)
  return _mm256_fmadd_ps(_mm256_set1_ps(a), b, c);
#else
  return a * b + c;
#endif
}

// a(i, k) = data[i * row + k * column].
struct StridedTile {
  const float* data;
  int64_t row;
  int64_t column;
};

template <int kRows, int kVectors>
FT_INLINE void MicroProduct(int64_t depth, StridedTile a, const float* b, int64_t ldb, float* c, int64_t ldc,
                            bool accumulate) {
  Vector sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) {
      sums[i][j] = accumulate ? Load(c + i * ldc + j * kLanes) : Vector{};
    }
  }
  for (int64_t k = 0; k < depth; ++k) {
    Vector values[kVectors];
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) values[j] = Load(b + k * ldb + j * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const float factor = a.data[i * a.row + k * a.column];
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) sums[i][j] = MultiplyAdd(factor, values[j], sums[i][j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) Store(c + i * ldc + j * kLanes, sums[i][j]);
  }
}

template <int kVectors>
FT_INLINE void ColumnProduct(int64_t rows, int64_t depth, StridedTile a, const float* b, int64_t ldb,
                             float* c, int64_t ldc, bool accumulate) {
  int64_t i = 0;
  for (; i + kTileRows <= rows; i += kTileRows) {
    const StridedTile part = {a.data + i * a.row, a.row, a.column};
    MicroProduct<kTileRows, kVectors>(depth, part, b, ldb, c + i * ldc, ldc, accumulate);
  }
  for (; i < rows; ++i) {
    const StridedTile part = {a.data + i * a.row, a.row, a.column};
    MicroProduct<1, kVectors>(depth, part, b, ldb, c + i * ldc, ldc, accumulate);
  }
}

// c [rows, columns] = a [rows, depth] b [depth, columns], or += with `accumulate`. `columns` is a multiple of
// kLanes. Every sum runs over k in order, so an element does not depend on the tile it is in.
static inline void TileProduct(int64_t rows, int64_t columns, int64_t depth, StridedTile a, const float* b,
                               int64_t ldb, float* c, int64_t ldc, bool accumulate) {
  constexpr int64_t kWidth = kTileVectors * kLanes;
  int64_t j = 0;
  for (; j + kWidth <= columns; j += kWidth) {
    ColumnProduct<kTileVectors>(rows, depth, a, b + j, ldb, c + j, ldc, accumulate);
  }
  for (; j < columns; j += kLanes) ColumnProduct<1>(rows, depth, a, b + j, ldb, c + j, ldc, accumulate);
}

}  // namespace ft::cpu::FT_ISA
