// Whole vectors of f32 for one instruction set: what products and attention are written with. Included only
// by loops.
//
// A vector has kLanes lanes. With FT_EMULATE_BF16_DOT the lanes are those of AVX-512 and AVX512_BF16, but
// every operation is made of AVX2's, so that tests run the code of those instruction sets on machines without
// them.
#pragma once

#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "runtime/backends/cpu/simd/half.h"

namespace ft::cpu::FT_ISA {

#if defined(__AVX512F__) || defined(FT_EMULATE_BF16_DOT)
inline constexpr int kLanes = 16;
inline constexpr int kTileRows = 14;  // 14 x 2 sums of the 32 registers
#elif defined(__AVX2__)
inline constexpr int kLanes = 8;
inline constexpr int kTileRows = 6;  // 6 x 2 of 16
#else
inline constexpr int kLanes = 4;
inline constexpr int kTileRows = 4;
#endif
inline constexpr int kTileVectors = 2;
inline constexpr int kTileColumns = kTileVectors * kLanes;

using Vector __attribute__((vector_size(kLanes * sizeof(float)))) = float;
using Integers __attribute__((vector_size(kLanes * sizeof(int32_t)))) = int32_t;
using Words __attribute__((vector_size(kLanes * sizeof(uint32_t)))) = uint32_t;
using UnalignedVector __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias)) = float;

#if defined(FT_EMULATE_BF16_DOT)
struct Halves {
  __m256 low, high;
};
#endif

FT_INLINE int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }
FT_INLINE int64_t Larger(int64_t a, int64_t b) { return a > b ? a : b; }
FT_INLINE int64_t RoundUp(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

FT_INLINE Vector Broadcast(float x) {  // the bits of x, which may be a pair of bf16
#if defined(FT_EMULATE_BF16_DOT)
  return std::bit_cast<Vector>(Halves{_mm256_set1_ps(x), _mm256_set1_ps(x)});
#elif defined(__AVX512F__)
  return _mm512_set1_ps(x);
#elif defined(__AVX2__)
  return _mm256_set1_ps(x);
#else
  return Vector{x, x, x, x};
#endif
}
FT_INLINE Vector Maximum(Vector a, Vector b) { return a > b ? a : b; }
FT_INLINE bool AnyLane(Integers mask) {
  int32_t any = 0;
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) any |= mask[i];
  return any != 0;
}

// a * b + c, rounded once where the instruction set has FMA.
FT_INLINE Vector MultiplyAdd(Vector a, Vector b, Vector c) {
#if defined(FT_EMULATE_BF16_DOT)
  const Halves x = std::bit_cast<Halves>(a), y = std::bit_cast<Halves>(b), z = std::bit_cast<Halves>(c);
  return std::bit_cast<Vector>(
      Halves{_mm256_fmadd_ps(x.low, y.low, z.low), _mm256_fmadd_ps(x.high, y.high, z.high)});
#elif defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX2__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}

// kLanes elements of any float type, in f32.
FT_INLINE Vector LoadVector(const float* from) { return *reinterpret_cast<const UnalignedVector*>(from); }
FT_INLINE void StoreVector(float* to, Vector v) { *reinterpret_cast<UnalignedVector*>(to) = v; }

// LoadPart and StorePart: the first n of them, n at most kLanes; the others are zero, or not written.
#if defined(__AVX512F__)

FT_INLINE __mmask16 FirstLanes(int64_t n) { return static_cast<__mmask16>((uint32_t{1} << n) - 1); }

template <typename T>
FT_INLINE Vector LoadVector(const T* from) {
  return LoadVector(0xFFFF, from);
}
template <typename T>
FT_INLINE void StoreVector(T* to, Vector v) {
  StoreVector(0xFFFF, to, v);
}
template <typename T>
FT_INLINE Vector LoadPart(const T* from, int64_t n) {
  return LoadVector(FirstLanes(n), from);
}
template <typename T>
FT_INLINE void StorePart(T* to, Vector v, int64_t n) {
  StoreVector(FirstLanes(n), to, v);
}

#else

#if defined(__AVX2__) && !defined(FT_EMULATE_BF16_DOT)

FT_INLINE Vector LoadVector(const BFloat16* from) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
FT_INLINE Vector LoadVector(const Float16* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
FT_INLINE void StoreVector(BFloat16* to, Vector v) {
  const Words bits = std::bit_cast<Words>(v);
  const Words rounded = bits + 0x7FFFu + (bits >> 16 & 1u);
  const __m256i words = std::bit_cast<__m256i>((v != v ? bits | 0x00400000u : rounded) >> 16);
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), 0x08);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(packed));
}
FT_INLINE void StoreVector(Float16* to, Vector v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

#else

template <typename T>
FT_INLINE Vector LoadVector(const T* from) {
  Vector v;
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) v[i] = Load(from[i]);
  return v;
}
template <typename T>
FT_INLINE void StoreVector(T* to, Vector v) {
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) Store(v[i], to[i]);
}

#endif

template <typename T>
FT_INLINE Vector LoadPart(const T* from, int64_t n) {
  alignas(64) float lanes[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i] = Load(from[i]);
  return LoadVector(lanes);
}
template <typename T>
FT_INLINE void StorePart(T* to, Vector v, int64_t n) {
  alignas(64) float lanes[kLanes];
  StoreVector(lanes, v);
  for (int64_t i = 0; i < n; ++i) Store(lanes[i], to[i]);
}

#endif

template <typename T>
FT_INLINE Vector LoadLanes(const T* from, int64_t n) {
  return n >= kLanes ? LoadVector(from) : LoadPart(from, n);
}
template <typename T>
FT_INLINE void StoreLanes(T* to, Vector v, int64_t n) {
  n >= kLanes ? StoreVector(to, v) : StorePart(to, v, n);
}

// Of (2^r - 1) / r on [-1/2, 1/2]: the interpolation of degree 5 at Chebyshev's nodes (error of 2^r: 5e-9).
inline constexpr float kExp2Coefficients[] = {0.6931471825f,   0.2402265072f,   0.05550356954f,
                                              0.009618083015f, 0.001339086331f, 0.0001545316336f};

// 2^x within 2 ulp for x in [-126, 127]; 0 below -86.5, which is what a softmax needs: beside a sum of at
// least 1, 9e-27 is nothing, while products with denormal numbers, which smaller values would lead to, take a
// hundred times as long. NaN for NaN.
FT_INLINE Vector SoftmaxExp2(Vector x) {
  constexpr float kShift =
      0x1.8p23f + 127.0f;  // adding it leaves the biased exponent in the low mantissa bits
  const Vector shifted = x + kShift;
  const Vector r = x - (shifted - kShift);
  Vector p = Broadcast(kExp2Coefficients[5]);
#pragma GCC unroll 5
  for (int i = 4; i >= 0; --i) p = MultiplyAdd(p, r, Broadcast(kExp2Coefficients[i]));
  p = MultiplyAdd(p, r, Broadcast(1.0f));
  const Vector power = std::bit_cast<Vector>(std::bit_cast<Integers>(shifted) << 23);
  return x < -86.5f ? Vector{} : p * power;
}

}  // namespace ft::cpu::FT_ISA
