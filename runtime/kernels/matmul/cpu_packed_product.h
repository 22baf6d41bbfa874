// A part of a matrix product from packed blocks, after K. Goto, R. van de Geijn, "Anatomy of high-performance
// matrix multiplication", 2008: a block of A is packed so that it stays in the second-level cache, a panel of
// B so that it stays in the first, and a tile of C in the registers. Packing converts to units. Between the
// blocks of k the sums are f32: in C itself, or beside it where C has 16 bits. Included only by gemm.cc.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/simd/transpose.h"
#include "runtime/kernels/matmul/cpu_loops.h"

namespace ft::cpu::FT_ISA {
namespace {

constexpr int kColumns = kTileColumns;
// Rows of a packed block of A: 448 KiB with AVX-512, 264 KiB with AVX2, 224 KiB with AMX.
constexpr int64_t kBlockRows = kTileRows * (kLanes == 16 ? 32 : 44);
constexpr int64_t kBlockColumns = 768;  // of a packed block of B
static_assert(kBlockColumns % kColumns == 0);

// A thread's memory for a part. Vectors are stored across the end of the last row of A's tiles.
struct Packed {
  alignas(64) float a[kBlockRows * kMaxDepth + kLanes];
  alignas(64) float b[kBlockColumns * kMaxDepth];
  alignas(64) float sums[kMaxGroupBlocks * kBlockRows * kBlockColumns];  // for C of 16 bits
  alignas(64) float bias[kBlockColumns];                                 // for a bias of 16 bits
};
static_assert(sizeof(Packed) <= kScratchBytes);

// to[k * kTileRows + i] = unit k_begin + k of row `row` + i of op(A), for `depth` elements from element
// k_begin on. Whole vectors are stored: what exceeds kTileRows is overwritten by the next k.
template <typename Units, typename T>
void PackRows(const GemmPart& p, int64_t row, int64_t rows, int64_t k_begin, int64_t depth, float* to) {
  const T* a = static_cast<const T*>(p.a);
  if (p.transpose_a) {
    const T* from = a + k_begin * p.m + row;
    // More than `rows` where it is there, since whole vectors are faster; nobody reads it.
    const int64_t n = Smaller(kLanes, p.m - row);
    for (int64_t k = 0; k < depth; k += Units::kElements, to += kTileRows) {
      StoreVector(to, Units::Across(from + k * p.m, p.m, depth - k, n));
    }
    return;
  }
  const T* from = a + row * p.k + k_begin;
  constexpr int64_t kStep = kLanes * Units::kElements;
  for (int64_t k = 0; k < depth; k += kStep, to += kLanes * kTileRows) {
    TransposeBlock<Units>(from + k, p.k, rows, to, kTileRows, depth - k);
  }
}

// to[k * kColumns + j] = unit k_begin + k of column `column` + j of op(B), zero beyond `columns`.
template <typename Units, typename T>
void PackColumns(const GemmPart& p, int64_t column, int64_t columns, int64_t k_begin, int64_t depth,
                 float* to) {
  const T* b = static_cast<const T*>(p.b);
  if (!p.transpose_b) {
    const T* from = b + k_begin * p.n + column;
    for (int64_t k = 0; k < depth; k += Units::kElements, to += kColumns) {
      for (int64_t j = 0; j < kColumns; j += kLanes) {
        const int64_t n = Larger(columns - j, 0);
        StoreVector(to + j, Units::Across(from + k * p.n + (n == 0 ? 0 : j), p.n, depth - k, n));
      }
    }
    return;
  }
  constexpr int64_t kStep = kLanes * Units::kElements;
  for (int64_t k = 0; k < depth; k += kStep, to += kLanes * kColumns) {
    for (int64_t j = 0; j < kColumns; j += kLanes) {
      const T* from = b + (column + (j < columns ? j : 0)) * p.k + k_begin + k;
      TransposeBlock<Units>(from, p.k, columns - j, to + j, kColumns, depth - k);
    }
  }
}

// What a tile starts from: zero, the sums so far, or the bias in every row (stride 0).
struct Start {
  const float* data;  // nullptr for zero
  int64_t stride;
};

template <typename Units, int kTile>
void Tile(int64_t depth, const float* a, const float* b, Start start, int64_t, int64_t columns, float* c,
          int64_t ldc) {
  Vector sums[kTile][kTileVectors];
  if (start.data == nullptr) {
#pragma GCC unroll 16
    for (int i = 0; i < kTile; ++i) sums[i][0] = sums[i][1] = Vector{};
  } else if (columns == kColumns) {
#pragma GCC unroll 16
    for (int i = 0; i < kTile; ++i) {
      sums[i][0] = LoadVector(start.data + i * start.stride);
      sums[i][1] = LoadVector(start.data + i * start.stride + kLanes);
    }
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < kTile; ++i) {
      const float* from = start.data + i * start.stride;
      sums[i][0] = LoadLanes(from, columns);
      sums[i][1] = columns > kLanes ? LoadPart(from + kLanes, columns - kLanes) : Vector{};
    }
  }
  const auto element = [a](int64_t i, int64_t k)
                           __attribute__((always_inline)) { return a[k * kTileRows + i]; };
  AddProducts<Units, kTile, kTileVectors>(depth, element, b, kColumns, sums);
  if (columns == kColumns) {
#pragma GCC unroll 16
    for (int i = 0; i < kTile; ++i) {
      StoreVector(c + i * ldc, sums[i][0]);
      StoreVector(c + i * ldc + kLanes, sums[i][1]);
    }
    return;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kTile; ++i) {
    StoreLanes(c + i * ldc, sums[i][0], columns);
    if (columns > kLanes) StorePart(c + i * ldc + kLanes, sums[i][1], columns - kLanes);
  }
}

// Rows and columns of C that are worked on, and their sums: sums[(i - row) * stride + j - column].
struct Block {
  int64_t row, row_end, column, column_end;
  float* sums;
  int64_t stride;
  const float* bias;  // of the columns; nullptr for none
};

// Sums start from C of 16 bits.
template <typename T>
void LoadSums(const GemmPart& p, const Block& block) {
  for (int64_t row = block.row; row < block.row_end; ++row) {
    LoadFloats(static_cast<const T*>(p.c) + row * p.n + block.column, block.column_end - block.column,
               block.sums + (row - block.row) * block.stride);
  }
}

// Rows [row, row_end) of a panel of sums, all of k in them, to C; with the bias where they did not start from
// it.
template <typename T>
void StoreSums(const GemmPart& p, const Block& block, int64_t row, int64_t row_end, int64_t column,
               int64_t columns) {
  const bool add_bias = p.accumulate && block.bias != nullptr;
  for (; row < row_end; ++row) {
    for (int64_t j = column; j < column + columns; j += kLanes) {
      const int64_t n = column + columns - j;
      Vector sums = LoadLanes(block.sums + (row - block.row) * block.stride + (j - block.column), n);
      if (add_bias) sums += LoadLanes(block.bias + (j - block.column), n);
      StoreLanes(static_cast<T*>(p.c) + row * p.n + j, sums, n);
    }
  }
}

template <typename T>
void LoadBias(const void* bias, int64_t column, int64_t columns, float* to) {
  LoadFloats(static_cast<const T*>(bias) + column, columns, to);
}

constexpr void (*kLoadSums[])(const GemmPart&, const Block&) = FT_EVERY_FLOAT(LoadSums);
constexpr void (*kStoreSums[])(const GemmPart&, const Block&, int64_t, int64_t, int64_t,
                               int64_t) = FT_EVERY_FLOAT(StoreSums);
constexpr void (*kLoadBias[])(const void*, int64_t, int64_t, float*) = FT_EVERY_FLOAT(LoadBias);

// Asks for the source of a panel of B while another is multiplied, a share with every tile: packing would
// wait for memory, line by line.
class Prefetch {
 public:
  FT_INLINE void Prepare(Prefetch& to, const GemmPart& p, int64_t column, int64_t columns, int64_t k,
                         int64_t depth, int64_t tiles) {
    const int64_t size = static_cast<int64_t>(SizeOf(p.b_type));
    to.stride_ = (p.transpose_b ? p.k : p.n) * size;
    to.begin_ = static_cast<const char*>(p.b) + (p.transpose_b ? column * p.k + k : k * p.n + column) * size;
    to.lines_ = ((p.transpose_b ? depth : columns) * size + 63) / 64;
    to.rest_ = to.lines_ * (p.transpose_b ? columns : depth);
    to.share_ = (to.rest_ + tiles - 1) / tiles;
    to.line_ = 0;
  }

  void Share() {
    for (int64_t i = 0; i < share_ && rest_ > 0; ++i, --rest_) {
      __builtin_prefetch(begin_ + line_ * 64);
      if (++line_ == lines_) {
        line_ = 0;
        begin_ += stride_;
      }
    }
  }

 private:
  const char* begin_ = nullptr;
  int64_t stride_ = 0, lines_ = 0, line_ = 0, rest_ = 0, share_ = 0;
};

using PackFunction = void (*)(const GemmPart&, int64_t, int64_t, int64_t, int64_t, float*);
// Units of k, packed A and B, rows and columns of C that there are, C and its stride.
using TileFunction = void (*)(int64_t, const float*, const float*, Start, int64_t, int64_t, float*, int64_t);

// Of some units: kPackRows and kPackColumns by the type of their matrix, and TileOf(rows).
template <typename Units>
struct Functions;

// Asks for the sums of the tile below, which is the next: of a large C they come from beyond the second-level
// cache.
FT_INLINE void PrefetchSums(const float* sums, int64_t stride, int64_t rows) {
  for (int64_t i = 0; i < rows; ++i, sums += stride) {
    for (int64_t j = 0; j < kColumns; j += 16) __builtin_prefetch(sums + j, 1, 3);
  }
}

// One block of A times one panel of B into one panel of the sums.
template <typename Units>
FT_INLINE void Panel(const GemmPart& p, const Block& block, int64_t row_begin, int64_t row_end,
                     int64_t column, int64_t columns, int64_t k, int64_t units, const float* a,
                     const float* b, Prefetch& prefetch) {
  for (int64_t row = row_begin; row < row_end; row += Units::kRows) {
    const int64_t rows = Smaller(Units::kRows, row_end - row);
    float* sums = block.sums + (row - block.row) * block.stride + (column - block.column);
    Start start = {sums, block.stride};
    if (k == 0 && !p.accumulate) {
      start = {block.bias == nullptr ? nullptr : block.bias + (column - block.column), 0};
    }
    prefetch.Share();
    PrefetchSums(sums + rows * block.stride, block.stride, Smaller(Units::kRows, row_end - row - rows));
    Functions<Units>::TileOf(rows)(units, a + (row - row_begin) * units, b, start, rows, columns, sums,
                                   block.stride);
  }
}

// The block with its sums and bias, before the first product.
FT_INLINE Block BeginBlock(const GemmPart& p, Packed& packed, int64_t row, int64_t row_end, int64_t column,
                           int64_t column_end) {
  Block block = {row, row_end, column, column_end, packed.sums, kBlockColumns, nullptr};
  if (p.c_type == DType::kF32) {
    block.sums = static_cast<float*>(p.c) + row * p.n + column;
    block.stride = p.n;
  } else if (p.accumulate) {
    kLoadSums[static_cast<int>(p.c_type)](p, block);
  }
  if (p.bias != nullptr && p.bias_type == DType::kF32) {
    block.bias = static_cast<const float*>(p.bias) + column;
  } else if (p.bias != nullptr) {
    kLoadBias[static_cast<int>(p.bias_type)](p.bias, column, column_end - column, packed.bias);
    block.bias = packed.bias;
  }
  return block;
}

// Elements k ... k + depth - 1 of the sums of rows [row, row_end) of a block. B is packed with the first
// rows.
template <typename Units>
FT_INLINE void BlockProduct(const GemmPart& p, Packed& packed, const Block& block, int64_t row,
                            int64_t row_end, int64_t k, int64_t depth) {
  const PackFunction pack_rows = Functions<Units>::kPackRows[static_cast<int>(p.a_type)];
  const PackFunction pack_columns = Functions<Units>::kPackColumns[static_cast<int>(p.b_type)];
  const bool store = (p.c_type != DType::kF32 || (p.accumulate && block.bias != nullptr)) && k + depth == p.k;
  const bool pack = row == block.row, once = row == block.row && row_end == block.row_end;
  const int64_t units = RoundUp(depth, Units::kStep) / Units::kElements;
  const int64_t tiles = (row_end - row + Units::kRows - 1) / Units::kRows;
  for (int64_t i = row; i < row_end; i += Units::kRows) {
    pack_rows(p, i, Smaller(Units::kRows, row_end - i), k, depth, packed.a + (i - row) * units);
  }
  for (int64_t column = block.column; column < block.column_end; column += kColumns) {
    const int64_t columns = Smaller(kColumns, block.column_end - column), next = column + kColumns;
    // A panel that is needed once stays where the first-level cache has it.
    float* b = packed.b + (once ? 0 : (column - block.column) * units);
    if (pack) pack_columns(p, column, columns, k, depth, b);
    Prefetch prefetch;
    if (pack && next < block.column_end) {
      Prefetch::Prepare(prefetch, p, next, Smaller(kColumns, block.column_end - next), k, depth, tiles);
    }
    Panel<Units>(p, block, row, row_end, column, columns, k, units, packed.a, b, prefetch);
    if (store) kStoreSums[static_cast<int>(p.c_type)](p, block, row, row_end, column, columns);
  }
}

template <typename Units>
void PackedProduct(const GemmPart& p) {
  Packed& packed = *static_cast<Packed*>(p.scratch);
  constexpr int64_t kBlockDepth = Units::kDepth * Units::kElements;
  constexpr int64_t kGroupRows = Units::kGroupBlocks * kBlockRows;
  for (int64_t row = p.row_begin; row < p.row_end; row += kGroupRows) {
    const int64_t row_end = Smaller(p.row_end, row + kGroupRows);
    for (int64_t column = p.column_begin; column < p.column_end; column += kBlockColumns) {
      const Block block =
          BeginBlock(p, packed, row, row_end, column, Smaller(p.column_end, column + kBlockColumns));
      for (int64_t k = 0; k < p.k; k += kBlockDepth) {
        for (int64_t i = row; i < row_end; i += kBlockRows) {
          BlockProduct<Units>(p, packed, block, i, Smaller(row_end, i + kBlockRows), k,
                              Smaller(kBlockDepth, p.k - k));
        }
      }
    }
  }
}

}  // namespace
}  // namespace ft::cpu::FT_ISA
