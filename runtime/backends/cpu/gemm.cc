#include "runtime/backends/cpu/gemm.h"

#include <cblas.h>
#include <omp.h>

#include <algorithm>

#include "runtime/backends/cpu/parallel.h"
#include "runtime/backends/cpu/thread_scratch.h"
#include "runtime/base/checked.h"
#include "runtime/kernels/matmul/cpu_loops.h"

namespace ft::cpu {
namespace {

// How C is cut for threads: a grid of rectangles of whole register tiles.
struct Grid {
  int64_t row_parts = 1, column_parts = 1;
  int64_t rows = 0, columns = 0;  // of a part, the last ones excepted
};

// The BLAS rounds differently near the edges of a product, so its parts must not depend on the number of
// threads.
Grid MakeBlasGrid(const GemmShape& shape) {
  constexpr int64_t kMultiple = 48, kParts = 4;
  const int64_t columns = ((shape.n + kParts - 1) / kParts + kMultiple - 1) / kMultiple * kMultiple;
  return {1, (shape.n + columns - 1) / columns, shape.m, columns};
}

Grid MakeGrid(const GemmShape& shape, int64_t tile_rows, int64_t tile_columns, int threads) {
  const int64_t row_tiles = (shape.m + tile_rows - 1) / tile_rows;
  const int64_t column_tiles = (shape.n + tile_columns - 1) / tile_columns;
  Grid best = {};
  int64_t best_cost = 0;
  for (int64_t parts = 1; parts <= threads; ++parts) {
    if (threads % parts != 0) continue;
    const int64_t rows = (row_tiles + parts - 1) / parts;
    const int64_t columns = (column_tiles + threads / parts - 1) / (threads / parts);
    // Time of the largest part: its products, and the packing of its rows of A and columns of B (a packed
    // element costs about as much as 8 products).
    const int64_t cost =
        rows * tile_rows * columns * tile_columns + 8 * (rows * tile_rows + columns * tile_columns);
    if (parts > 1 && cost >= best_cost) continue;
    best_cost = cost;
    best = {(row_tiles + rows - 1) / rows, (column_tiles + columns - 1) / columns, rows * tile_rows,
            columns * tile_columns};
  }
  return best;
}

// The matrices are f32.
void BlasProduct(const Loops& loops, const GemmPart& p) {
  const int64_t rows = p.row_end - p.row_begin, columns = p.column_end - p.column_begin;
  const float* a = static_cast<const float*>(p.a) + p.row_begin * (p.transpose_a ? 1 : p.k);
  const float* b = static_cast<const float*>(p.b) + p.column_begin * (p.transpose_b ? p.k : 1);
  float* c = static_cast<float*>(p.c) + p.row_begin * p.n + p.column_begin;
  cblas_sgemm(CblasRowMajor, p.transpose_a ? CblasTrans : CblasNoTrans,
              p.transpose_b ? CblasTrans : CblasNoTrans, rows, columns, p.k, 1.0f, a,
              p.transpose_a ? p.m : p.k, b, p.transpose_b ? p.k : p.n, p.accumulate ? 1.0f : 0.0f, c, p.n);
  if (p.bias == nullptr) return;
  loops.gemm.add_bias(c, p.n, static_cast<const float*>(p.bias) + p.column_begin, rows, columns);
}

}  // namespace

void Gemm(const Loops& loops, const GemmShape& shape, GemmInput a, GemmInput b, GemmInput bias, GemmOutput c,
          int num_threads) {
  // OpenBLAS takes as many threads as OpenMP would give the caller; every loop of ours names its number, so
  // one pool serves.
  if (omp_get_max_threads() != 1) omp_set_num_threads(1);
  const bool f32 =
      a.dtype == DType::kF32 && b.dtype == DType::kF32 && c.dtype == DType::kF32 && bias.dtype == DType::kF32;
  const bool own = !(f32 && loops.gemm.blas_for_f32);
  const int threads = ThreadsFor(num_threads, CheckedMul(shape.m, shape.n, shape.k) / 16);
  const int64_t tile_rows = IsBf16Product(a.dtype, b.dtype) ? loops.gemm.bf16_rows : loops.gemm.rows;
  const Grid grid = own ? MakeGrid(shape, tile_rows, loops.gemm.columns, threads) : MakeBlasGrid(shape);
  ParallelFor(grid.row_parts * grid.column_parts, threads, [&](int64_t i) {
    const int64_t row = i / grid.column_parts * grid.rows, column = i % grid.column_parts * grid.columns;
    const GemmPart part = {.a = a.data,
                           .b = b.data,
                           .bias = bias.data,
                           .c = c.data,
                           .a_type = a.dtype,
                           .b_type = b.dtype,
                           .bias_type = bias.dtype,
                           .c_type = c.dtype,
                           .m = shape.m,
                           .n = shape.n,
                           .k = shape.k,
                           .transpose_a = shape.transpose_a,
                           .transpose_b = shape.transpose_b,
                           .accumulate = shape.accumulate,
                           .row_begin = row,
                           .row_end = std::min(shape.m, row + grid.rows),
                           .column_begin = column,
                           .column_end = std::min(shape.n, column + grid.columns),
                           .scratch = ThreadScratch()};
    own ? loops.gemm.product(part) : BlasProduct(loops, part);
  });
}

}  // namespace ft::cpu
