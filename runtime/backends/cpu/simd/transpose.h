// Transposed copies for one instruction set. Included only by loops.
#pragma once

#include <cstdint>
#include <cstring>

#include "runtime/backends/cpu/simd/units.h"

namespace ft::cpu::FT_ISA {

// Rows become columns, in place.
FT_INLINE void TransposeVectors(Vector (&r)[kLanes]) {
#if defined(__AVX512F__)
  __m512 t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
  // r[4 g + c] holds in its 128-bit lane l the column 4 l + c of rows 4 g ... 4 g + 3.
#pragma GCC unroll 4
  for (int g = 0; g < 16; g += 4) {
    const __m512d t0 = _mm512_castps_pd(t[g]), t1 = _mm512_castps_pd(t[g + 1]);
    const __m512d t2 = _mm512_castps_pd(t[g + 2]), t3 = _mm512_castps_pd(t[g + 3]);
    r[g] = _mm512_castpd_ps(_mm512_unpacklo_pd(t0, t2));
    r[g + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(t0, t2));
    r[g + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(t1, t3));
    r[g + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(t1, t3));
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512 even01 = _mm512_shuffle_f32x4(r[c], r[4 + c], 0x88),
                 odd01 = _mm512_shuffle_f32x4(r[c], r[4 + c], 0xdd);
    const __m512 even23 = _mm512_shuffle_f32x4(r[8 + c], r[12 + c], 0x88),
                 odd23 = _mm512_shuffle_f32x4(r[8 + c], r[12 + c], 0xdd);
    t[c] = _mm512_shuffle_f32x4(even01, even23, 0x88);
    t[4 + c] = _mm512_shuffle_f32x4(odd01, odd23, 0x88);
    t[8 + c] = _mm512_shuffle_f32x4(even01, even23, 0xdd);
    t[12 + c] = _mm512_shuffle_f32x4(odd01, odd23, 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) r[i] = t[i];
#elif defined(__AVX2__) && !defined(FT_EMULATE_BF16_DOT)
  __m256 t[8];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
  // r[4 g + c] holds in its 128-bit lane l the column 4 l + c of rows 4 g ... 4 g + 3.
#pragma GCC unroll 2
  for (int g = 0; g < 8; g += 4) {
    r[g] = _mm256_shuffle_ps(t[g], t[g + 2], 0x44);
    r[g + 1] = _mm256_shuffle_ps(t[g], t[g + 2], 0xee);
    r[g + 2] = _mm256_shuffle_ps(t[g + 1], t[g + 3], 0x44);
    r[g + 3] = _mm256_shuffle_ps(t[g + 1], t[g + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    t[c] = _mm256_permute2f128_ps(r[c], r[4 + c], 0x20);
    t[4 + c] = _mm256_permute2f128_ps(r[c], r[4 + c], 0x31);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) r[i] = t[i];
#else
  float t[kLanes][kLanes];
  for (int i = 0; i < kLanes; ++i) {
    for (int j = 0; j < kLanes; ++j) t[i][j] = r[j][i];
  }
  std::memcpy(r, t, sizeof t);
#endif
}

// to[k * ldt + i] = unit k of row i, from[i * ldf + ...], for kLanes rows and kLanes units; rows beyond
// `rows` and elements beyond `n` (positive) of a row are not read and become zero. Stores min(kLanes, units
// that have elements) whole vectors.
template <typename Units, typename T>
FT_INLINE void TransposeBlock(const T* from, int64_t ldf, int64_t rows, float* to, int64_t ldt, int64_t n) {
  Vector r[kLanes];
  if (rows >= kLanes && n >= kLanes * Units::kElements) {
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) r[i] = Units::Along(from + i * ldf, kLanes * Units::kElements);
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) r[i] = i < rows ? Units::Along(from + i * ldf, n) : Vector{};
  }
  TransposeVectors(r);
#pragma GCC unroll 16
  for (int k = 0; k < kLanes; ++k) {
    if (k * Units::kElements < n) StoreVector(to + k * ldt, r[k]);
  }
}

}  // namespace ft::cpu::FT_ISA
