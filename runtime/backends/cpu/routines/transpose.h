// Transposed copies for one instruction set. Included only by routines.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/routines/half.h"

namespace ft::cpu::FT_ISA {

#if defined(__AVX512F__)
// to[k * ldt + i] = from[i * ldf + k] for a block of 16 x 16 of any float type; the columns of rows beyond
// `rows` become zero. Stores whole vectors of 16.
template <typename T>
FT_INLINE void TransposeBlock(const T* from, int64_t ldf, int64_t rows, float* to, int64_t ldt,
                              int64_t columns) {
  __m512 r[16], t[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    const __mmask16 mask =
        i < rows ? static_cast<__mmask16>((uint32_t{1} << columns) - 1) : static_cast<__mmask16>(0);
    r[i] = LoadVector(mask, from + i * ldf);
  }
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
  for (int k = 0; k < 16; ++k) {
    if (k < columns) _mm512_storeu_ps(to + k * ldt, t[k]);
  }
}
#endif

}  // namespace ft::cpu::FT_ISA
