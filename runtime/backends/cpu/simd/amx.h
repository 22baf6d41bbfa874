// The tile registers of AMX, and what they multiply. Included only by loops.
//
// With FT_EMULATE_AMX the instructions are plain loops of the same bits, so that tests run the code of that
// instruction set on machines without it.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/simd/units.h"

namespace ft::cpu::FT_ISA {

inline constexpr int kAmxSide = 16;  // rows of a tile register, and numbers of 32 bits in one

// Of bf16, or of f32 that is rounded to it, in tiles of 16 rows of 16 units.
struct AmxUnits : Bf16Units {
  static constexpr bool kTiles = true;
  static constexpr int kRows = 2 * kAmxSide, kSmallRows = kAmxSide;
  static constexpr int64_t kStep = kAmxSide * kElements;
  // A panel of B, of 16 KiB, leaves room for A's tiles in the first-level cache, and the sums of one block
  // lie in the second-level one.
  static constexpr int64_t kDepth = 128, kGroupBlocks = 1;
};
static_assert(AmxUnits::kRows == kTileColumns, "sums are tiles of 2 x 2 registers");
static_assert(AmxUnits::kRows * AmxUnits::kElements % AmxUnits::kStep == 0,
              "what begins at a tile's rows begins at a tile's units");

#if defined(FT_EMULATE_AMX)

struct AmxTiles {
  float tile[8][kAmxSide][kAmxSide];
  bool configured;
};
inline thread_local AmxTiles emulated_tiles;

// What the processor does without LDTILECFG: it stops.
FT_INLINE float (&EmulatedTile(int number)) [kAmxSide][kAmxSide] {
  if (!emulated_tiles.configured) __builtin_trap();
  return emulated_tiles.tile[number];
}

// From here on until EndAmx the calling thread has eight tiles of 16 rows of 64 bytes.
FT_INLINE void BeginAmx() {
  __builtin_memset(&emulated_tiles, 0, sizeof emulated_tiles);
  emulated_tiles.configured = true;
}
FT_INLINE void EndAmx() { emulated_tiles.configured = false; }

template <int kTile>
FT_INLINE void ZeroTile() {
  __builtin_memset(EmulatedTile(kTile), 0, sizeof EmulatedTile(kTile));
}

// Row i is at from + i * stride, in numbers of 32 bits.
template <int kTile>
FT_INLINE void LoadTile(const float* from, int64_t stride) {
  for (int i = 0; i < kAmxSide; ++i) {
    __builtin_memcpy(EmulatedTile(kTile)[i], from + i * stride, sizeof EmulatedTile(kTile)[i]);
  }
}

template <int kTile>
FT_INLINE void StoreTile(float* to, int64_t stride) {
  for (int i = 0; i < kAmxSide; ++i) {
    __builtin_memcpy(to + i * stride, EmulatedTile(kTile)[i], sizeof EmulatedTile(kTile)[i]);
  }
}

// TDPBF16PS: c[i][j] += the sum over k of a[i][k]'s pair times b[k][j]'s. The even elements are one chain of
// multiply-adds from zero, the odd ones another; their sum is added. Each step is rounded to the nearest,
// ties to even; denormal numbers count as zero, before and after it (Intel, "Intel Architecture Instruction
// Set Extensions Programming Reference").
template <int kC, int kA, int kB>
__attribute__((noinline)) void DotTiles() {
  auto &a = EmulatedTile(kA), &b = EmulatedTile(kB), &c = EmulatedTile(kC);
  const auto even_of = [](Words pairs) { return Flush(pairs << 16); };
  const auto odd_of = [](Words pairs) { return Flush(pairs & 0xFFFF0000u); };
  Vector b_even[kAmxSide], b_odd[kAmxSide];
  for (int k = 0; k < kAmxSide; ++k) {
    const Words right = std::bit_cast<Words>(LoadVector(b[k]));
    b_even[k] = even_of(right), b_odd[k] = odd_of(right);
  }
  for (int i = 0; i < kAmxSide; ++i) {
    const Words left = std::bit_cast<Words>(LoadVector(a[i]));
    float a_even[kAmxSide], a_odd[kAmxSide];
    StoreVector(a_even, even_of(left)), StoreVector(a_odd, odd_of(left));
    Vector even = {}, odd = {};
    for (int k = 0; k < kAmxSide; ++k) {
      even = Flush(MultiplyAdd(Broadcast(a_even[k]), b_even[k], even));
      odd = Flush(MultiplyAdd(Broadcast(a_odd[k]), b_odd[k], odd));
    }
    StoreVector(c[i], Flush(Flush(LoadVector(c[i])) + Flush(even + odd)));
  }
}

#else

// What LDTILECFG reads.
struct AmxShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(AmxShapes) == 64);

// Assembly, not intrinsics: those take the number of a tile only as a literal, and do not tell the compiler
// that loads read memory.
FT_INLINE void BeginAmx() {
  static constexpr AmxShapes kShapes;
  asm volatile("ldtilecfg %0" ::"m"(kShapes));
}
FT_INLINE void EndAmx() { asm volatile("tilerelease"); }

template <int kTile>
FT_INLINE void ZeroTile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}

template <int kTile>
FT_INLINE void LoadTile(const float* from, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride * 4), "i"(kTile) : "memory");
}

template <int kTile>
FT_INLINE void StoreTile(float* to, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride * 4), "i"(kTile) : "memory");
}

template <int kC, int kA, int kB>
FT_INLINE void DotTiles() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
}

#endif

template <>
struct TileSession<AmxUnits> {
  TileSession() { BeginAmx(); }
  TileSession(const TileSession&) = delete;
  ~TileSession() { EndAmx(); }
};

// The sums of a tile of C, kRows x kTileColumns, are the tile registers 0 to 3, row by row. A half tile has
// 16 rows.
template <bool kHalf>
FT_INLINE void ZeroTileSums() {
  ZeroTile<0>();
  ZeroTile<1>();
  if constexpr (kHalf) return;
  ZeroTile<2>();
  ZeroTile<3>();
}

template <bool kHalf>
FT_INLINE void LoadTileSums(const float* from, int64_t stride) {
  LoadTile<0>(from, stride);
  LoadTile<1>(from + kAmxSide, stride);
  if constexpr (kHalf) return;
  LoadTile<2>(from + kAmxSide * stride, stride);
  LoadTile<3>(from + kAmxSide * stride + kAmxSide, stride);
}

template <bool kHalf>
FT_INLINE void StoreTileSums(float* to, int64_t stride) {
  StoreTile<0>(to, stride);
  StoreTile<1>(to + kAmxSide, stride);
  if constexpr (kHalf) return;
  StoreTile<2>(to + kAmxSide * stride, stride);
  StoreTile<3>(to + kAmxSide * stride + kAmxSide, stride);
}

// sums += 16 units of the rows at `a` and `lower`, those of 16 rows below, times those of the columns at b.
template <bool kHalf>
FT_INLINE void AddTiles(const float* a, const float* lower, int64_t lda, const float* b, int64_t ldb) {
  LoadTile<6>(b, ldb);
  LoadTile<4>(a, lda);
  if constexpr (!kHalf) LoadTile<5>(lower, lda);
  LoadTile<7>(b + kAmxSide, ldb);
  DotTiles<0, 4, 6>();
  if constexpr (!kHalf) DotTiles<2, 5, 6>();
  DotTiles<1, 4, 7>();
  if constexpr (!kHalf) DotTiles<3, 5, 7>();
}

}  // namespace ft::cpu::FT_ISA
