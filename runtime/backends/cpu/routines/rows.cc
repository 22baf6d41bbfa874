#include "runtime/backends/cpu/routines/rows.h"

#include "runtime/backends/cpu/routines/vector_math.h"

namespace ft::cpu::FT_ISA {
namespace {

void Embedding(const EmbeddingArgs& args, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const int64_t id = args.ids[row];
    float* result = args.result + row * args.columns;
    if (id < 0 || id >= args.vocabulary) {
      for (int64_t i = 0; i < args.columns; ++i) result[i] = __builtin_nanf("");
      continue;
    }
    const float* source = args.table + id * args.columns;
#pragma omp simd
    for (int64_t i = 0; i < args.columns; ++i) result[i] = source[i];
  }
}

void EmbeddingGrad(const EmbeddingGradArgs& args, int64_t begin, int64_t end) {
  for (int64_t row = 0; row < args.rows; ++row) {
    const int64_t id = args.ids[row];
    if (id < 0 || id >= args.vocabulary) continue;
    const float* dy = args.dy + row * args.columns;
    float* sum = args.dtable + id * args.columns;
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) sum[i] += dy[i];
  }
}

void ColumnSum(const ColumnSumArgs& args, int64_t row_begin, int64_t row_end, int64_t column_begin,
               int64_t column_end) {
  const float* first = args.x + row_begin * args.columns;
#pragma omp simd
  for (int64_t i = column_begin; i < column_end; ++i) args.result[i] = first[i];
  for (int64_t row = row_begin + 1; row < row_end; ++row) {
    const float* x = args.x + row * args.columns;
#pragma omp simd
    for (int64_t i = column_begin; i < column_end; ++i) args.result[i] += x[i];
  }
}

}  // namespace

extern const RowRoutines kRows;
const RowRoutines kRows = {Embedding, EmbeddingGrad, ColumnSum};

}  // namespace ft::cpu::FT_ISA
