// The product follows K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication", 2008: a
// block of A is packed so that it stays in the second-level cache, a panel of B so that it stays in the
// first, and a tile of C in the registers.
#include "runtime/backends/cpu/routines/gemm.h"

#include "runtime/backends/cpu/routines/tile_product.h"
#include "runtime/backends/cpu/routines/transpose.h"
#include "runtime/backends/cpu/routines/vector_math.h"

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

FT_INLINE int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// to[k * kRows + i] = op(A)(row + i, k_begin + k). Vectors of 16 are stored: what exceeds kRows is
// overwritten by the next k.
FT_INLINE void PackRows(const GemmPart& p, int64_t row, int64_t rows, int64_t k_begin, int64_t depth,
                        float* to) {
  if (p.transpose_a) {
    const __mmask16 mask = static_cast<__mmask16>((1u << rows) - 1);
    const float* from = p.a + k_begin * p.m + row;
    for (int64_t k = 0; k < depth; ++k)
      _mm512_storeu_ps(to + k * kRows, _mm512_maskz_loadu_ps(mask, from + k * p.m));
    return;
  }
  const float* from = p.a + row * p.k + k_begin;
  int64_t k = 0;
  for (; k + 16 <= depth; k += 16) TransposeBlock(from + k, p.k, rows, to + k * kRows, kRows, 16);
  if (k < depth) TransposeBlock(from + k, p.k, rows, to + k * kRows, kRows, depth - k);
}

// to[k * kColumns + j] = op(B)(k_begin + k, column + j), zero beyond `columns`.
FT_INLINE void PackColumns(const GemmPart& p, int64_t column, int64_t columns, int64_t k_begin, int64_t depth,
                           float* to) {
  for (int64_t half = 0; half < 2; ++half, to += 16, column += 16, columns -= 16) {
    const int64_t width = columns < 0 ? 0 : Smaller(columns, 16);
    if (!p.transpose_b) {
      const __mmask16 mask = static_cast<__mmask16>((1u << width) - 1);
      const float* from = p.b + k_begin * p.n + column;
      for (int64_t k = 0; k < depth; ++k)
        _mm512_store_ps(to + k * kColumns, _mm512_maskz_loadu_ps(mask, from + k * p.n));
      continue;
    }
    const float* from = p.b + column * p.k + k_begin;
    int64_t k = 0;
    for (; k + 16 <= depth; k += 16) TransposeBlock(from + k, p.k, width, to + k * kColumns, kColumns, 16);
    if (k < depth) TransposeBlock(from + k, p.k, width, to + k * kColumns, kColumns, depth - k);
  }
}

// What a tile of C starts from: zero, C itself, or the bias in every row (stride 0).
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

// One block of A times one panel of B into one panel of C.
FT_INLINE void Panel(const GemmPart& p, int64_t row_begin, int64_t row_end, int64_t column, int64_t columns,
                     int64_t k_begin, int64_t depth) {
  for (int64_t row = row_begin; row < row_end; row += kRows) {
    float* c = p.c + row * p.n + column;
    Start start = {c, p.n};
    if (k_begin == 0 && !p.accumulate) start = {p.bias == nullptr ? nullptr : p.bias + column, 0};
    kTiles[Smaller(kRows, row_end - row)](depth, packed_a + (row - row_begin) * depth, packed_b, start,
                                          columns, c, p.n);
  }
}

void Product(const GemmPart& p) {
  for (int64_t row = p.row_begin; row < p.row_end; row += kBlockRows) {
    const int64_t row_end = Smaller(p.row_end, row + kBlockRows);
    for (int64_t block = p.column_begin; block < p.column_end; block += kBlockColumns) {
      const int64_t block_end = Smaller(p.column_end, block + kBlockColumns);
      for (int64_t k = 0; k < p.k; k += kDepth) {
        const int64_t depth = Smaller(kDepth, p.k - k);
        for (int64_t i = row; i < row_end; i += kRows) {
          PackRows(p, i, Smaller(kRows, row_end - i), k, depth, packed_a + (i - row) * depth);
        }
        for (int64_t column = block; column < block_end; column += kColumns) {
          const int64_t columns = Smaller(kColumns, block_end - column);
          PackColumns(p, column, columns, k, depth, packed_b);
          Panel(p, row, row_end, column, columns, k, depth);
        }
      }
    }
  }
}

#endif

}  // namespace

extern const GemmRoutines kGemm;
#if defined(__AVX512F__)
const GemmRoutines kGemm = {AddBias, Product};
#else
const GemmRoutines kGemm = {AddBias, nullptr};
#endif

}  // namespace ft::cpu::FT_ISA
