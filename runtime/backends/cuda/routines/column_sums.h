// Sums over rows: gradients of biases, and partial sums of blocks of rows added up.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/routines/launch.h"
#include "runtime/base/dtype.h"

namespace ft::cuda {

struct SumLeadingArgs {
  const void* x;  // [rows, columns]
  DType dtype;
  void* result;  // [columns]
  DType result_dtype;
  float* partials;  // [blocks, columns]; not looked at for one block
  int64_t rows;
  int64_t columns;
  int64_t blocks;  // cuda_workspace::SumLeadingBlocks
};

// result[i] = the sum over rows of x[row, i], in f32, rounded once.
int SumLeading(const SumLeadingArgs& args, StreamHandle stream);

struct AddPartialsArgs {
  const float* partials;  // [blocks, results, columns]
  int64_t blocks;
  int64_t columns;
  void* result[2];  // [columns] each
  DType dtype[2];
  int results;  // 1 or 2
};

// result[r][i] = the sum over blocks of partials[block, r, i], always in the same order.
int AddPartials(const AddPartialsArgs& args, StreamHandle stream);

}  // namespace ft::cuda
