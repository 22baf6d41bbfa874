// The product follows K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication", 2008: a
// block of A is packed so that it stays in the second-level cache, a panel of B so that it stays in the
// first, and a tile of C in the registers. Packing converts to f32. Between the blocks of k the sums are f32:
// in C itself, or beside it where C has 16 bits.
#include "runtime/backends/cpu/routines/gemm.h"

#if defined(__AVX512F__)
#include "runtime/backends/cpu/routines/half.h"
#include "runtime/backends/cpu/routines/transpose.h"
#else
#include "runtime/backends/cpu/routines/portable_product.h"
#endif

namespace ft::cpu::FT_ISA {
namespace {

void AddBias(float* c, int64_t ldc, const float* bias, int64_t m, int64_t n) {
  for (int64_t i = 0; i < m; ++i) {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) c[i * ldc + j] += bias[j];
  }
}

#if defined(__AVX512F__)

constexpr int kRows = kGemmRows, kColumns = kGemmColumns;  // 14 x 2 sums of the 32 registers
constexpr int64_t kDepth = 256;                            // of a block, over k
constexpr int64_t kBlockRows = 32 * kRows;                 // of a packed block of A: 448 KiB
constexpr int64_t kBlockColumns = 24 * kColumns;           // between which A is packed again

// Zero pages until a thread first multiplies; nothing is allocated then.
alignas(64) thread_local float packed_a[kBlockRows * kDepth + 16];
alignas(64) thread_local float packed_b[kColumns * kDepth];
// For C of 16 bits: the sums of a block, 1344 KiB. For a bias of 16 bits: its part.
alignas(64) thread_local float partial_sums[kBlockRows * kBlockColumns];
alignas(64) thread_local float packed_bias[kBlockColumns];

FT_INLINE int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// to[k * kRows + i] = op(A)(row + i, k_begin + k). Vectors of 16 are stored: what exceeds kRows is
// overwritten by the next k.
template <typename T>
void PackRows(const GemmPart& p, int64_t row, int64_t rows, int64_t k_begin, int64_t depth, float* to) {
  const T* a = static_cast<const T*>(p.a);
  if (p.transpose_a) {
    const __mmask16 mask = static_cast<__mmask16>((1u << rows) - 1);
    const T* from = a + k_begin * p.m + row;
    for (int64_t k = 0; k < depth; ++k) _mm512_storeu_ps(to + k * kRows, LoadVector(mask, from + k * p.m));
    return;
  }
  const T* from = a + row * p.k + k_begin;
  int64_t k = 0;
  for (; k + 16 <= depth; k += 16) TransposeBlock(from + k, p.k, rows, to + k * kRows, kRows, 16);
  if (k < depth) TransposeBlock(from + k, p.k, rows, to + k * kRows, kRows, depth - k);
}

// to[k * kColumns + j] = op(B)(k_begin + k, column + j), zero beyond `columns`.
template <typename T>
void PackColumns(const GemmPart& p, int64_t column, int64_t columns, int64_t k_begin, int64_t depth,
                 float* to) {
  const T* b = static_cast<const T*>(p.b);
  for (int64_t half = 0; half < 2; ++half, to += 16, column += 16, columns -= 16) {
    const int64_t width = columns < 0 ? 0 : Smaller(columns, 16);
    if (!p.transpose_b) {
      const __mmask16 mask = static_cast<__mmask16>((1u << width) - 1);
      const T* from = b + k_begin * p.n + column;
      for (int64_t k = 0; k < depth; ++k)
        _mm512_store_ps(to + k * kColumns, LoadVector(mask, from + k * p.n));
      continue;
    }
    const T* from = b + column * p.k + k_begin;
    int64_t k = 0;
    for (; k + 16 <= depth; k += 16) TransposeBlock(from + k, p.k, width, to + k * kColumns, kColumns, 16);
    if (k < depth) TransposeBlock(from + k, p.k, width, to + k * kColumns, kColumns, depth - k);
  }
}

using PackFunction = void (*)(const GemmPart&, int64_t, int64_t, int64_t, int64_t, float*);
constexpr PackFunction kPackRows[] = FT_EVERY_FLOAT(PackRows);
constexpr PackFunction kPackColumns[] = FT_EVERY_FLOAT(PackColumns);

// What a tile starts from: zero, the sums so far, or the bias in every row (stride 0).
struct Start {
  const float* data;  // nullptr for zero
  int64_t stride;
};

template <int kTile>
void Tile(int64_t depth, const float* a, const float* b, Start start, int64_t columns, float* c,
          int64_t ldc) {
  const __mmask16 low = columns >= 16 ? 0xFFFF : static_cast<__mmask16>((1u << columns) - 1);
  const __mmask16 high =
      columns >= 32 ? 0xFFFF : (columns > 16 ? static_cast<__mmask16>((1u << (columns - 16)) - 1) : 0);
  __m512 sums[kTile][2];
#pragma GCC unroll 14
  for (int i = 0; i < kTile; ++i) {
    sums[i][0] = start.data == nullptr ? _mm512_setzero_ps()
                                       : _mm512_maskz_loadu_ps(low, start.data + i * start.stride);
    sums[i][1] = start.data == nullptr ? _mm512_setzero_ps()
                                       : _mm512_maskz_loadu_ps(high, start.data + i * start.stride + 16);
  }
  for (int64_t k = 0; k < depth; ++k) {
    const __m512 b0 = _mm512_load_ps(b + k * kColumns), b1 = _mm512_load_ps(b + k * kColumns + 16);
#pragma GCC unroll 14
    for (int i = 0; i < kTile; ++i) {
      const __m512 value = _mm512_set1_ps(a[k * kRows + i]);
      sums[i][0] = _mm512_fmadd_ps(value, b0, sums[i][0]);
      sums[i][1] = _mm512_fmadd_ps(value, b1, sums[i][1]);
    }
  }
#pragma GCC unroll 14
  for (int i = 0; i < kTile; ++i) {
    _mm512_mask_storeu_ps(c + i * ldc, low, sums[i][0]);
    _mm512_mask_storeu_ps(c + i * ldc + 16, high, sums[i][1]);
  }
}

using TileFunction = void (*)(int64_t, const float*, const float*, Start, int64_t, float*, int64_t);
constexpr TileFunction kTiles[kRows + 1] = {nullptr,  Tile<1>,  Tile<2>,  Tile<3>,  Tile<4>,
                                            Tile<5>,  Tile<6>,  Tile<7>,  Tile<8>,  Tile<9>,
                                            Tile<10>, Tile<11>, Tile<12>, Tile<13>, Tile<14>};

// Rows and columns of C that are worked on, and their sums: sums[(i - row) * stride + j - column].
struct Block {
  int64_t row, row_end, column, column_end;
  float* sums;
  int64_t stride;
  const float* bias;  // of the columns; nullptr for none
};

// One block of A times one panel of B into one panel of the sums.
FT_INLINE void Panel(const GemmPart& p, const Block& block, int64_t column, int64_t columns, int64_t k_begin,
                     int64_t depth) {
  for (int64_t row = block.row; row < block.row_end; row += kRows) {
    float* sums = block.sums + (row - block.row) * block.stride + (column - block.column);
    Start start = {sums, block.stride};
    if (k_begin == 0 && !p.accumulate) {
      start = {block.bias == nullptr ? nullptr : block.bias + (column - block.column), 0};
    }
    kTiles[Smaller(kRows, block.row_end - row)](depth, packed_a + (row - block.row) * depth, packed_b, start,
                                                columns, sums, block.stride);
  }
}

// Sums start from C of 16 bits.
template <typename T>
void LoadSums(const GemmPart& p, const Block& block) {
  for (int64_t row = block.row; row < block.row_end; ++row) {
    LoadFloats(static_cast<const T*>(p.c) + row * p.n + block.column, block.column_end - block.column,
               block.sums + (row - block.row) * block.stride);
  }
}

// A panel of sums, all of k in them, to C; with the bias where they did not start from it.
template <typename T>
void StoreSums(const GemmPart& p, const Block& block, int64_t column, int64_t columns) {
  const bool add_bias = p.accumulate && block.bias != nullptr;
  for (int64_t row = block.row; row < block.row_end; ++row) {
    for (int64_t j = column; j < column + columns; j += 16) {
      const int64_t width = Smaller(16, column + columns - j);
      const __mmask16 mask = static_cast<__mmask16>((1u << width) - 1);
      __m512 sums = LoadVector(mask, block.sums + (row - block.row) * block.stride + (j - block.column));
      if (add_bias) sums = _mm512_add_ps(sums, LoadVector(mask, block.bias + (j - block.column)));
      StoreVector(mask, static_cast<T*>(p.c) + row * p.n + j, sums);
    }
  }
}

constexpr void (*kLoadSums[])(const GemmPart&, const Block&) = FT_EVERY_FLOAT(LoadSums);
constexpr void (*kStoreSums[])(const GemmPart&, const Block&, int64_t, int64_t) = FT_EVERY_FLOAT(StoreSums);

template <typename T>
void PackBias(const void* bias, int64_t column, int64_t columns) {
  LoadFloats(static_cast<const T*>(bias) + column, columns, packed_bias);
}
constexpr void (*kPackBias[])(const void*, int64_t, int64_t) = FT_EVERY_FLOAT(PackBias);

// The block with its sums and bias, before the first product.
FT_INLINE Block BeginBlock(const GemmPart& p, int64_t row, int64_t row_end, int64_t column,
                           int64_t column_end) {
  Block block = {row, row_end, column, column_end, partial_sums, kBlockColumns, nullptr};
  if (p.c_type == DType::kF32) {
    block.sums = static_cast<float*>(p.c) + row * p.n + column;
    block.stride = p.n;
  } else if (p.accumulate) {
    kLoadSums[static_cast<int>(p.c_type)](p, block);
  }
  if (p.bias != nullptr && p.bias_type == DType::kF32) {
    block.bias = static_cast<const float*>(p.bias) + column;
  } else if (p.bias != nullptr) {
    kPackBias[static_cast<int>(p.bias_type)](p.bias, column, column_end - column);
    block.bias = packed_bias;
  }
  return block;
}

FT_INLINE void BlockProduct(const GemmPart& p, const Block& block) {
  const PackFunction pack_rows = kPackRows[static_cast<int>(p.a_type)];
  const PackFunction pack_columns = kPackColumns[static_cast<int>(p.b_type)];
  const bool store = p.c_type != DType::kF32 || (p.accumulate && block.bias != nullptr);
  for (int64_t k = 0; k < p.k; k += kDepth) {
    const int64_t depth = Smaller(kDepth, p.k - k);
    for (int64_t i = block.row; i < block.row_end; i += kRows) {
      pack_rows(p, i, Smaller(kRows, block.row_end - i), k, depth, packed_a + (i - block.row) * depth);
    }
    for (int64_t column = block.column; column < block.column_end; column += kColumns) {
      const int64_t columns = Smaller(kColumns, block.column_end - column);
      pack_columns(p, column, columns, k, depth, packed_b);
      Panel(p, block, column, columns, k, depth);
      if (store && k + depth == p.k) kStoreSums[static_cast<int>(p.c_type)](p, block, column, columns);
    }
  }
}

void Product(const GemmPart& p) {
  for (int64_t row = p.row_begin; row < p.row_end; row += kBlockRows) {
    const int64_t row_end = Smaller(p.row_end, row + kBlockRows);
    for (int64_t column = p.column_begin; column < p.column_end; column += kBlockColumns) {
      const int64_t column_end = Smaller(p.column_end, column + kBlockColumns);
      BlockProduct(p, BeginBlock(p, row, row_end, column, column_end));
    }
  }
}

#endif

}  // namespace

extern const GemmRoutines kGemm;
#if defined(__AVX512F__)
const GemmRoutines kGemm = {AddBias, Product, false};
#else
const GemmRoutines kGemm = {AddBias, PortableProduct, true};
#endif

}  // namespace ft::cpu::FT_ISA
