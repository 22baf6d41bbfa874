// Matrix products side by side. Enqueues on `stream` and returns a cudaError_t as int, 0 for success.
#pragma once

#include <cstdint>

#include "runtime/base/dtype.h"

struct CUstream_st;

namespace ft::cuda {

using StreamHandle = CUstream_st*;

// r[i] = op(a[i]) op(b[i]) for `batch` matrices, row-major and dense: op(a) is m x k, stored as k x m when
// transpose_a; op(b) is k x n, stored as n x k when transpose_b. Sums are f32, rounded once.
struct DotArgs {
  const void* a;
  const void* b;
  void* r;
  int64_t m, n, k;  // below 2^31
  bool transpose_a, transpose_b;
  int64_t batch;
};

// Blocks of the launch: below 2^31.
int64_t DotBlocks(const DotArgs& args);

// a and b are of one float type, `input`.
int Dot(const DotArgs& args, DType input, DType output, StreamHandle stream);

}  // namespace ft::cuda
