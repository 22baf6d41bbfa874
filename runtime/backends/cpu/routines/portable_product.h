// A matrix product for instruction sets where the BLAS multiplies f32: it takes any float types, by tiles
// that are converted to f32. Included only by gemm.cc.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/routines/gemm.h"
#include "runtime/backends/cpu/routines/half.h"
#include "runtime/backends/cpu/routines/tile_product.h"

namespace ft::cpu::FT_ISA {
namespace {

constexpr int64_t kDepth = 256, kBlockRows = 16 * kGemmRows, kBlockColumns = 4 * kGemmColumns;

// Zero pages until a thread first multiplies; nothing is allocated then. 480 KiB in all.
alignas(64) thread_local float tile_a[kBlockRows * kDepth];
alignas(64) thread_local float tile_b[kDepth * kBlockColumns];
alignas(64) thread_local float tile_c[kBlockRows * kBlockColumns];

FT_INLINE int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// A block of C.
struct Block {
  int64_t row, rows, column, columns;
};

// op(A)(row ... row + rows, k_begin ... k_begin + depth), with the strides as A has them.
template <typename T>
StridedTile ConvertRows(const GemmPart& p, const Block& block, int64_t k_begin, int64_t depth) {
  const T* a = static_cast<const T*>(p.a);
  if (p.transpose_a) {
    for (int64_t k = 0; k < depth; ++k) {
      LoadFloats(a + (k_begin + k) * p.m + block.row, block.rows, tile_a + k * kBlockRows);
    }
    return {tile_a, 1, kBlockRows};
  }
  for (int64_t i = 0; i < block.rows; ++i) {
    LoadFloats(a + (block.row + i) * p.k + k_begin, depth, tile_a + i * kDepth);
  }
  return {tile_a, kDepth, 1};
}

// tile_b[k * kBlockColumns + j] = op(B)(k_begin + k, column + j), zero from `columns` to the next whole
// vector.
template <typename T>
void ConvertColumns(const GemmPart& p, const Block& block, int64_t k_begin, int64_t depth) {
  const T* b = static_cast<const T*>(p.b);
  const int64_t width = (block.columns + kLanes - 1) / kLanes * kLanes;
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t j = block.columns; j < width; ++j) tile_b[k * kBlockColumns + j] = 0.0f;
  }
  if (!p.transpose_b) {
    for (int64_t k = 0; k < depth; ++k) {
      LoadFloats(b + (k_begin + k) * p.n + block.column, block.columns, tile_b + k * kBlockColumns);
    }
    return;
  }
  alignas(64) float row[kDepth];
  for (int64_t j = 0; j < block.columns; ++j) {
    LoadFloats(b + (block.column + j) * p.k + k_begin, depth, row);
    for (int64_t k = 0; k < depth; ++k) tile_b[k * kBlockColumns + j] = row[k];
  }
}

// to[j] = x[begin + j].
template <typename T>
void LoadRow(const void* x, int64_t begin, int64_t n, float* to) {
  LoadFloats(static_cast<const T*>(x) + begin, n, to);
}

template <typename T>
void StoreRow(const float* from, int64_t n, void* x, int64_t begin) {
  StoreFloats(from, n, static_cast<T*>(x) + begin);
}

constexpr StridedTile (*kConvertRows[])(const GemmPart&, const Block&, int64_t,
                                        int64_t) = FT_EVERY_FLOAT(ConvertRows);
constexpr void (*kConvertColumns[])(const GemmPart&, const Block&, int64_t,
                                    int64_t) = FT_EVERY_FLOAT(ConvertColumns);
constexpr void (*kLoadRow[])(const void*, int64_t, int64_t, float*) = FT_EVERY_FLOAT(LoadRow);
constexpr void (*kStoreRow[])(const float*, int64_t, void*, int64_t) = FT_EVERY_FLOAT(StoreRow);

void PortableBlock(const GemmPart& p, const Block& block) {
  const int a_type = static_cast<int>(p.a_type), b_type = static_cast<int>(p.b_type),
            c_type = static_cast<int>(p.c_type);
  for (int64_t i = 0; i < block.rows * kBlockColumns; ++i) tile_c[i] = 0.0f;
  for (int64_t i = 0; p.accumulate && i < block.rows; ++i) {
    kLoadRow[c_type](p.c, (block.row + i) * p.n + block.column, block.columns, tile_c + i * kBlockColumns);
  }
  const int64_t width = (block.columns + kLanes - 1) / kLanes * kLanes;
  for (int64_t k = 0; k < p.k; k += kDepth) {
    const int64_t depth = Smaller(kDepth, p.k - k);
    const StridedTile a = kConvertRows[a_type](p, block, k, depth);
    kConvertColumns[b_type](p, block, k, depth);
    TileProduct(block.rows, width, depth, a, tile_b, kBlockColumns, tile_c, kBlockColumns, true);
  }
  alignas(64) float bias[kBlockColumns] = {};
  if (p.bias != nullptr) kLoadRow[static_cast<int>(p.bias_type)](p.bias, block.column, block.columns, bias);
  for (int64_t i = 0; i < block.rows; ++i) {
    float* row = tile_c + i * kBlockColumns;
#pragma omp simd
    for (int64_t j = 0; j < block.columns; ++j) row[j] += bias[j];
    kStoreRow[c_type](row, block.columns, p.c, (block.row + i) * p.n + block.column);
  }
}

void PortableProduct(const GemmPart& p) {
  for (int64_t row = p.row_begin; row < p.row_end; row += kBlockRows) {
    const int64_t rows = Smaller(kBlockRows, p.row_end - row);
    for (int64_t column = p.column_begin; column < p.column_end; column += kBlockColumns) {
      PortableBlock(p, {row, rows, column, Smaller(kBlockColumns, p.column_end - column)});
    }
  }
}

}  // namespace
}  // namespace ft::cpu::FT_ISA
