// Many elements at a time between memory of any float type and f32, for one instruction set.
//
// Included only by files compiled once per instruction set, inside their namespace (FT_ISA). The bits are
// those of Load and Store in element.h, NaN included, on every instruction set: rounding is to nearest, ties
// to even, values beyond the largest become infinite, subnormal numbers are kept.
#pragma once

#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "runtime/backends/cpu/simd/element.h"

namespace ft::cpu::FT_ISA {

#if defined(__AVX512F__)

// 16 elements; `mask` says which are read (the others become zero) or written.
FT_INLINE __m512 LoadVector(__mmask16 mask, const float* from) { return _mm512_maskz_loadu_ps(mask, from); }

FT_INLINE __m512 LoadVector(__mmask16 mask, const BFloat16* from) {
  const __m256i bits = _mm256_maskz_loadu_epi16(mask, from);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

FT_INLINE __m512 LoadVector(__mmask16 mask, const Float16* from) {
  return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, from));
}

FT_INLINE void StoreVector(__mmask16 mask, float* to, __m512 v) { _mm512_mask_storeu_ps(to, mask, v); }

FT_INLINE void StoreVector(__mmask16 mask, BFloat16* to, __m512 v) {
  const __m512i bits = _mm512_castps_si512(v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
  const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
  const __m512i chosen = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x00400000));
  _mm256_mask_storeu_epi16(to, mask, _mm512_cvtepi32_epi16(_mm512_srli_epi32(chosen, 16)));
}

FT_INLINE void StoreVector(__mmask16 mask, Float16* to, __m512 v) {
  _mm256_mask_storeu_epi16(to, mask, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

#endif

// to[i] = from[i] for i < n, in f32.
template <typename T>
FT_INLINE void LoadFloats(const T* from, int64_t n, float* to) {
#if defined(__AVX512F__)
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) _mm512_storeu_ps(to + i, LoadVector(0xFFFF, from + i));
  const __mmask16 rest = static_cast<__mmask16>((uint32_t{1} << (n - i)) - 1);
  if (i < n) _mm512_mask_storeu_ps(to + i, rest, LoadVector(rest, from + i));
#else
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] = Load(from[i]);
#endif
}

// to[i] = from[i] for i < n, rounded. The buffers must not overlap.
template <typename T>
FT_INLINE void StoreFloats(const float* from, int64_t n, T* to) {
#if defined(__AVX512F__)
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) StoreVector(0xFFFF, to + i, _mm512_loadu_ps(from + i));
  const __mmask16 rest = static_cast<__mmask16>((uint32_t{1} << (n - i)) - 1);
  if (i < n) StoreVector(rest, to + i, _mm512_maskz_loadu_ps(rest, from + i));
#else
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) Store(from[i], to[i]);
#endif
}

#if defined(__F16C__) && !defined(__AVX512F__)

FT_INLINE void LoadFloats(const Float16* from, int64_t n, float* to) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  }
  for (; i < n; ++i) to[i] = Load(from[i]);
}

FT_INLINE void StoreFloats(const float* from, int64_t n, Float16* to) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  }
  for (; i < n; ++i) Store(from[i], to[i]);
}

#endif

}  // namespace ft::cpu::FT_ISA
