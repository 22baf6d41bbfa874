// What products are made of. Included only by loops.
//
// The dimension that is summed over is cut in units. A unit of f32 is a number; a unit of bf16 is a pair of
// neighbours, the first one in the lower half of 32 bits, as VDPBF16PS takes them. Units are carried about as
// f32, but arithmetic never touches them.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/simd/vector.h"

// Products of bf16 without converting it to f32 first.
#if defined(__AVX512BF16__) || defined(FT_EMULATE_BF16_DOT)
#define FT_BF16_DOT 1
#else
#define FT_BF16_DOT 0
#endif
// Products of bf16 in the tiles of AMX.
#ifndef FT_AMX
#define FT_AMX 0
#endif

namespace ft::cpu::FT_ISA {

// Of a block of a product, in units; blocks of rows of A whose sums are held at a time, so that B is packed
// only once for them.
inline constexpr int64_t kMaxDepth = 256, kMaxGroupBlocks = kLanes == 16 ? 2 : 3;

// How products in vectors are cut.
struct VectorUnits {
  static constexpr bool kTiles = false;    // in the registers of AMX
  static constexpr int kRows = kTileRows;  // of a tile of C
  static constexpr int kSmallRows =
      kTileRows == 14 ? 8 : 4;                  // of what is left below whole tiles of attention
  static constexpr int64_t kDepth = kMaxDepth;  // of a block, in units
  static constexpr int64_t kGroupBlocks = kMaxGroupBlocks;
};

// What products need while they are made in tiles: nothing in vectors.
template <typename Units>
struct TileSession {};

// Of any float type, converted to f32.
struct F32Units : VectorUnits {
  static constexpr int64_t kElements = 1;      // of a unit
  static constexpr int64_t kStep = kElements;  // what is summed over is padded to a multiple of these

  FT_INLINE Vector MultiplyAdd(Vector a, Vector b, Vector c) { return FT_ISA::MultiplyAdd(a, b, c); }

  // A unit of each of n columns: elements from[j * ld + i] for j < kElements, zero from `depth` on. At most
  // kLanes columns; the units of others are zero.
  template <typename T>
  FT_INLINE Vector Across(const T* from, int64_t, int64_t, int64_t n) {
    return LoadLanes(from, n);
  }

  // n elements of one row, zero beyond, as kLanes units.
  template <typename T>
  FT_INLINE Vector Along(const T* from, int64_t n) {
    return LoadLanes(from, n);
  }
};

#if defined(FT_EMULATE_BF16_DOT)
// Denormal numbers become zero.
FT_INLINE Vector Flush(Words x) {
  return std::bit_cast<Vector>((x & 0x7F800000u) == 0u ? x & 0x80000000u : x);
}
FT_INLINE Vector Flush(Vector x) { return Flush(std::bit_cast<Words>(x)); }
#endif

#if FT_BF16_DOT

// Of bf16, or of f32 that is rounded to it.
struct Bf16Units : VectorUnits {
  static constexpr int64_t kElements = 2, kStep = kElements;

  // c + a1 b1, then + a0 b0, each step a multiply-add rounded to the nearest, ties to even; denormal numbers
  // count as zero, before and after a step.
#if defined(FT_EMULATE_BF16_DOT)
  static __attribute__((noinline)) Vector MultiplyAdd(Vector a, Vector b, Vector c) {
    const Words x = std::bit_cast<Words>(a), y = std::bit_cast<Words>(b);
    const Vector upper = FT_ISA::MultiplyAdd(Flush(x & 0xFFFF0000u), Flush(y & 0xFFFF0000u), Flush(c));
    return Flush(FT_ISA::MultiplyAdd(Flush(x << 16), Flush(y << 16), Flush(upper)));
  }
#else
  FT_INLINE Vector MultiplyAdd(Vector a, Vector b, Vector c) {
    return _mm512_dpbf16_ps(c, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
#endif

  template <typename T>
  FT_INLINE Vector Across(const T* from, int64_t ld, int64_t depth, int64_t n) {
    const Words first = Numbers(from, n);
    return std::bit_cast<Vector>(depth < 2 ? first : first | Numbers(from + ld, n) << 16);
  }

  template <typename T>
  FT_INLINE Vector Along(const T* from, int64_t n) {
#if defined(FT_EMULATE_BF16_DOT)
    alignas(64) uint32_t pairs[kLanes] = {};
    for (int64_t i = 0; i < Smaller(n, 2 * kLanes); ++i) pairs[i / 2] |= Bits(from[i]) << (i % 2 * 16);
    return LoadVector(reinterpret_cast<const float*>(pairs));
#else
    return AlongNative(from, n);
#endif
  }

 private:
#if defined(FT_EMULATE_BF16_DOT)
  FT_INLINE uint32_t Bits(BFloat16 x) { return x.bits; }
  FT_INLINE uint32_t Bits(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    BFloat16 rounded;
    Store(std::bit_cast<float>((bits & 0x7F800000u) == 0 ? bits & 0x80000000u : bits), rounded);
    return rounded.bits;
  }

  // Each in the lower half of 32 bits.
  template <typename T>
  FT_INLINE Words Numbers(const T* from, int64_t n) {
    alignas(64) uint32_t numbers[kLanes] = {};
    for (int64_t i = 0; i < Smaller(n, kLanes); ++i) numbers[i] = Bits(from[i]);
    return std::bit_cast<Words>(LoadVector(reinterpret_cast<const float*>(numbers)));
  }
#else
  FT_INLINE Words Numbers(const BFloat16* from, int64_t n) {
    const __mmask16 mask = n >= kLanes ? 0xFFFF : FirstLanes(n);
    return reinterpret_cast<Words>(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from)));
  }
  FT_INLINE Words Numbers(const float* from, int64_t n) {
    const __m256bh rounded = _mm512_cvtneps_pbh(LoadLanes(from, n));
    return reinterpret_cast<Words>(_mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(rounded)));
  }

  FT_INLINE Vector AlongNative(const BFloat16* from, int64_t n) {
    const __mmask32 mask = n >= 32 ? 0xFFFFFFFFu : (uint32_t{1} << n) - 1;
    return reinterpret_cast<Vector>(_mm512_maskz_loadu_epi16(mask, from));
  }
  FT_INLINE Vector AlongNative(const float* from, int64_t n) {
    const Vector low = LoadLanes(from, n),
                 high = n > kLanes ? LoadLanes(from + kLanes, n - kLanes) : Vector{};
    return reinterpret_cast<Vector>(_mm512_cvtne2ps_pbh(high, low));
  }
#endif
};

#endif

// The sums of a tile of C: sums[i][j] += a(i, k) * b[k * ldb + j ...] over `depth` units, in order.
template <typename Units, int kRows, int kVectors, typename Element>
FT_INLINE void AddProducts(int64_t depth, const Element& a, const float* b, int64_t ldb,
                           Vector (&sums)[kRows][kVectors]) {
#pragma GCC unroll 2
  for (int64_t k = 0; k < depth; ++k) {
    Vector values[kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) values[j] = LoadVector(b + k * ldb + j * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const Vector factor = Broadcast(a(i, k));
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) sums[i][j] = Units::MultiplyAdd(factor, values[j], sums[i][j]);
    }
  }
}

}  // namespace ft::cpu::FT_ISA
