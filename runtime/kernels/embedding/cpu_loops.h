// Moving rows, and sums over rows. Tables and rows are f32, bf16 or f16; sums are f32.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/loops.h"
#include "runtime/backends/cpu/simd/element_type.h"

namespace ft::cpu {

struct EmbeddingArgs {
  const int32_t* ids;  // [rows]
  const void* table;   // [vocabulary, columns]
  void* result;        // [rows, columns], of the table's type
  int64_t vocabulary;
  int64_t columns;
};

struct EmbeddingGradArgs {
  const int32_t* ids;  // [rows]
  const void* dy;      // [rows, columns]
  float* dtable;       // [vocabulary, columns]
  int64_t rows;
  int64_t vocabulary;
  int64_t columns;
};

// One function for each type of the table or dy, at FloatIndex(dtype).
struct EmbeddingLoops {
  // Rows begin ... end - 1. A row whose id is outside the table becomes NaN.
  void (*embedding[kFloatTypes])(const EmbeddingArgs&, int64_t begin, int64_t end);
  // Adds into columns begin ... end - 1. Ids outside the table are passed over.
  void (*embedding_grad[kFloatTypes])(const EmbeddingGradArgs&, int64_t begin, int64_t end);
};

FT_DECLARE_FOR_EVERY_ISA(EmbeddingLoops, kEmbedding)

}  // namespace ft::cpu
