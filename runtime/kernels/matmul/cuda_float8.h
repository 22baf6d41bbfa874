// Operands of a product, rounded to floats of 8 bits as the library for products wants them.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/device_code/launch.h"
#include "runtime/backends/cuda/float8_product.h"

namespace ft::cuda {

// A stored matrix of bf16, and where its elements go: `out` is [outer][padded], what the product sums over
// innermost and zeros behind it. All functions return a cudaError_t as int, 0 for success.
struct Float8Rounding {
  const void* x = nullptr;        // [rows, columns]
  int64_t rows = 0, columns = 0;  // of multiples of 16
  bool transpose = false;         // sums are over rows
  Float8 type = Float8::kE4M3;
  ScaleOf scale = ScaleOf::kTensor;
  int64_t padded = 0;            // what is summed over, up to a whole block
  void* out = nullptr;           // 16-byte aligned
  uint32_t* greatest = nullptr;  // scratch: cuda_workspace::kFloat8Greatest, or one for each square
  float* scales = nullptr;       // what a number counts
  ScaleStrides strides;          // of these
};

int RoundToFloat8(const Float8Rounding& rounding, StreamHandle stream);

}  // namespace ft::cuda
