// Rows of a table at ids, and the gradient of the table.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/device_code/launch.h"
#include "runtime/base/dtype.h"

namespace ft::cuda {

struct EmbeddingArgs {
  const int32_t* ids;  // [rows]
  const void* table;   // [vocabulary, columns]
  void* result;        // [rows, columns]
  DType dtype;         // of table and result
  int64_t rows;
  int64_t vocabulary;
  int64_t columns;
};

// Rows of ids outside the table become NaN.
int Embedding(const EmbeddingArgs& args, StreamHandle stream);

struct EmbeddingGradArgs {
  const int32_t* ids;  // [rows]; those outside the table are ignored
  const void* dy;      // [rows, columns]
  DType dtype;
  void* dtable;  // [vocabulary, columns]
  DType table_dtype;
  bool add;      // dtable holds what the sums are added to
  int64_t rows;  // below 2^31
  int64_t vocabulary;
  int64_t columns;
  void* workspace;  // cuda_workspace::EmbeddingGrad
};

// dtable[id] (or 0) + the rows of dy at the positions of id. Positions are sorted by id, slices of the sorted
// positions are summed in order, and the slices of an id are added in order: how a sum is associated depends
// on the ids alone.
int EmbeddingGrad(const EmbeddingGradArgs& args, StreamHandle stream);

}  // namespace ft::cuda
