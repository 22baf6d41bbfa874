// Moving rows, and sums over rows.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/routines/routines.h"

namespace ft::cpu {

struct EmbeddingArgs {
  const int32_t* ids;  // [rows]
  const float* table;  // [vocabulary, columns]
  float* result;       // [rows, columns]
  int64_t vocabulary;
  int64_t columns;
};

struct EmbeddingGradArgs {
  const int32_t* ids;  // [rows]
  const float* dy;     // [rows, columns]
  float* dtable;       // [vocabulary, columns]
  int64_t rows;
  int64_t vocabulary;
  int64_t columns;
};

// Sum of rows [row_begin, row_end) of x [.., columns], for columns [column_begin, column_end), in order of
// rows.
struct ColumnSumArgs {
  const float* x;
  int64_t columns;
  float* result;  // [columns]
};

struct RowRoutines {
  // Rows begin ... end - 1. A row whose id is outside the table becomes NaN.
  void (*embedding)(const EmbeddingArgs&, int64_t begin, int64_t end);
  // Adds into columns begin ... end - 1. Ids outside the table are passed over.
  void (*embedding_grad)(const EmbeddingGradArgs&, int64_t begin, int64_t end);
  void (*column_sum)(const ColumnSumArgs&, int64_t row_begin, int64_t row_end, int64_t column_begin,
                     int64_t column_end);
};

FT_DECLARE_FOR_EVERY_ISA(RowRoutines, kRows)

}  // namespace ft::cpu
