// Loops over single elements. Tensors are f32, bf16 or f16, all of one type but for Cast; arithmetic is in
// f32 and each result is rounded once. Outputs may be the very buffers of inputs of the same extent. All
// functions enqueue on `stream` and return a cudaError_t as int, 0 for success.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/device_code/launch.h"
#include "runtime/base/dtype.h"

namespace ft::cuda {

// r[i] = a[i] + b[i % period]; period divides elements and is below 2^31 unless it is `elements`.
struct BinaryArgs {
  const void* a;
  const void* b;
  void* r;
  int64_t elements;
  int64_t period;
};
int Add(const BinaryArgs& args, DType dtype, StreamHandle stream);

struct UnaryArgs {
  const void* x;
  void* r;
  int64_t elements;
};
int Cast(const UnaryArgs& args, DType from, DType to, StreamHandle stream);

}  // namespace ft::cuda
