// Products of bf16 by AMX, in the blocks of packed_product.h. Included only by gemm.cc.
//
// A tile of C is 32 x 32 sums in four tile registers. Panels of B lie as for VDPBF16PS; panels of A are
// tiles: for every 16 units of k the 16 units of rows 0 to 15, row by row, then those of rows 16 to 31.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/simd/amx.h"
#include "runtime/kernels/matmul/cpu_packed_product.h"

namespace ft::cpu::FT_ISA {
namespace {

static_assert(kBlockRows % AmxUnits::kRows == 0 && AmxUnits::kDepth % kAmxSide == 0);
constexpr int64_t kTileSize = kAmxSide * kAmxSide, kPairSize = 2 * kTileSize;  // in units

// See PackRows; rows beyond `rows` and units beyond `depth` up to a whole tile are zero.
template <typename T>
void PackAmxRows(const GemmPart& p, int64_t row, int64_t rows, int64_t k_begin, int64_t depth, float* to) {
  const T* a = static_cast<const T*>(p.a);
  if (!p.transpose_a) {
    const T* from = a + row * p.k + k_begin;
    for (int64_t i = 0; i < AmxUnits::kRows; ++i) {
      float* at = to + i / kAmxSide * kTileSize + i % kAmxSide * kAmxSide;
      for (int64_t k = 0; k < depth; k += AmxUnits::kStep, at += kPairSize) {
        StoreVector(at, i < rows ? AmxUnits::Along(from + i * p.k + k, Smaller(depth - k, AmxUnits::kStep))
                                 : Vector{});
      }
    }
    return;
  }
  const T* from = a + k_begin * p.m + row;
  for (int64_t k = 0; k < depth; k += AmxUnits::kStep) {
    for (int64_t half = 0; half < AmxUnits::kRows; half += kAmxSide, to += kTileSize) {
      Vector block[kLanes] = {};
      for (int64_t unit = 0; unit < kAmxSide && half < rows; ++unit) {
        const int64_t at = k + unit * AmxUnits::kElements;
        if (at >= depth) break;
        block[unit] = AmxUnits::Across(from + at * p.m + half, p.m, depth - at, rows - half);
      }
      TransposeVectors(block);
#pragma GCC unroll 16
      for (int i = 0; i < kAmxSide; ++i) StoreVector(to + i * kAmxSide, block[i]);
    }
  }
}

// See PackColumns; units beyond `depth` up to a whole tile are zero.
template <typename T>
void PackAmxColumns(const GemmPart& p, int64_t column, int64_t columns, int64_t k_begin, int64_t depth,
                    float* to) {
  PackColumns<Bf16Units, T>(p, column, columns, k_begin, depth, to);
  const int64_t units = RoundUp(depth, AmxUnits::kElements) / AmxUnits::kElements;
  for (int64_t i = units * kColumns; i < RoundUp(units, kAmxSide) * kColumns; i += kLanes) {
    StoreVector(to + i, Vector{});
  }
}

template <bool kHalf>
void AmxTile(int64_t depth, const float* a, const float* b, Start start, int64_t rows, int64_t columns,
             float* c, int64_t ldc) {
  alignas(64) float edge[AmxUnits::kRows * kColumns];
  const bool whole = rows == (kHalf ? kAmxSide : AmxUnits::kRows) && columns == kColumns;
  if (start.data == nullptr) {
    ZeroTileSums<kHalf>();
  } else if (whole) {
    LoadTileSums<kHalf>(start.data, start.stride);
  } else {
    __builtin_memset(edge, 0, sizeof edge);
    for (int64_t i = 0; i < rows; ++i) {
      __builtin_memcpy(edge + i * kColumns, start.data + i * start.stride,
                       static_cast<size_t>(columns) * sizeof(float));
    }
    LoadTileSums<kHalf>(edge, kColumns);
  }
  for (int64_t k = 0; k < depth; k += kAmxSide, a += kPairSize, b += kAmxSide * kColumns) {
    AddTiles<kHalf>(a, a + kTileSize, kAmxSide, b, kColumns);
  }
  if (whole) return StoreTileSums<kHalf>(c, ldc);
  StoreTileSums<kHalf>(edge, kColumns);
  for (int64_t i = 0; i < rows; ++i) {
    __builtin_memcpy(c + i * ldc, edge + i * kColumns, static_cast<size_t>(columns) * sizeof(float));
  }
}

template <>
struct Functions<AmxUnits> {
  static constexpr PackFunction kPackRows[] = {PackAmxRows<float>, PackAmxRows<BFloat16>};
  static constexpr PackFunction kPackColumns[] = {PackAmxColumns<float>, PackAmxColumns<BFloat16>};
  static TileFunction TileOf(int64_t rows) { return rows <= kAmxSide ? AmxTile<true> : AmxTile<false>; }
};

void AmxProduct(const GemmPart& p) {
  const TileSession<AmxUnits> session;
  PackedProduct<AmxUnits>(p);
}

// Four chains of sums, as in a product.
double AmxPeak(int64_t iterations) {
  alignas(64) float values[kTileSize];
  for (float& value : values) value = 0x1.004p-10f;  // a pair of small numbers
  const TileSession<AmxUnits> session;
  LoadTileSums<false>(values, 0);
  LoadTile<4>(values, kAmxSide);
  LoadTile<5>(values, kAmxSide);
  for (int64_t k = 0; k < iterations; ++k) {
    DotTiles<0, 4, 5>();
    DotTiles<1, 4, 5>();
    DotTiles<2, 4, 5>();
    DotTiles<3, 4, 5>();
  }
  return 2.0 * 4 * kAmxSide * kAmxSide * kAmxSide * AmxUnits::kElements * static_cast<double>(iterations);
}

}  // namespace
}  // namespace ft::cpu::FT_ISA
