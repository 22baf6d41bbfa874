// Layer norm and RMS norm, alone or with the residual sum before them, and their gradients. Statistics and
// sums are f32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/backends/cuda/routines/launch.h"
#include "runtime/base/dtype.h"

namespace ft::cuda {

struct NormArgs {
  const void* x;       // [rows, columns]
  const void* weight;  // [columns]
  const void* bias;    // [columns]; null: RMS norm
  void* result;        // [rows, columns]
  DType dtype;         // of all of them
  int64_t rows;        // below 2^31
  int columns;
  float eps;
};

int Norm(const NormArgs& args, StreamHandle stream);

// sum = a + b, rounded; result = the norm of the sum. `sum` may be a or b itself, `result` the other.
struct AddNormArgs {
  const void* a;  // [rows, columns]
  const void* b;  // [rows, columns]
  void* sum;      // [rows, columns]
  NormArgs norm;  // `x` is the sum
};

int AddNorm(const AddNormArgs& args, StreamHandle stream);

struct NormGradArgs {
  const void* dy;  // [rows, columns]
  const void* x;
  const void* weight;
  void* dx;
  DType dtype;    // of these
  void* dweight;  // [columns]
  DType dweight_dtype;
  void* dbias;  // [columns]; null: RMS norm
  DType dbias_dtype;
  int64_t rows;  // below 2^31
  int columns;
  float eps;
  int64_t blocks;       // cuda_workspace::NormGradBlocks
  float* partials;      // [blocks, dweight and dbias, columns]
  size_t shared_bytes;  // that a block may have
};

int NormGrad(const NormGradArgs& args, StreamHandle stream);

}  // namespace ft::cuda
