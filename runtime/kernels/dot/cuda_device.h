// Matrix products side by side. All functions enqueue on `stream` and return a cudaError_t as int, 0 for
// success.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/device_code/launch.h"
#include "runtime/base/dtype.h"

namespace ft::cuda {

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

// The rows of group g are those from ends[g - 1], 0 for the first, to ends[g]. Ends are read on the device:
// each is taken as no less than the one before and no more than `rows`. Sums are as those of Dot.
struct GroupedDotArgs {
  const void* a;
  const void* b;
  const int32_t* ends;
  void* r;
  int64_t rows, groups, k, n;  // below 2^31, groups positive
  bool transpose_b;            // not of GroupedDotGrad
  bool accumulate = false;     // of GroupedDotGrad alone: to what r holds
};

int64_t GroupedDotBlocks(const GroupedDotArgs& args);
int64_t GroupedDotGradBlocks(const GroupedDotArgs& args);

// r[row] = a[row] op(b[g]) for the rows of each group g, and 0 for those behind. a is rows x k and op(b[g])
// k x n, stored as n x k when transpose_b.
int GroupedDot(const GroupedDotArgs& args, DType input, DType output, StreamHandle stream);

// r[g] = or, with accumulate, += the rows of a, transposed, times those of b for each group g. a has k
// columns and b n, r[g] is k x n.
int GroupedDotGrad(const GroupedDotArgs& args, DType input, DType output, StreamHandle stream);

}  // namespace ft::cuda
