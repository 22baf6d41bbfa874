// Random numbers from Philox, by the convention of runtime/base/philox.h. `rng` is in device memory: seed,
// micro-step, rank. All functions enqueue on `stream` and return a cudaError_t as int, 0 for success.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/device_code/launch.h"
#include "runtime/base/dtype.h"

namespace ft::cuda {

// r[i] = scale * z(first + i) for i < elements, first a multiple of 4, z(e) the number of element e of the
// stream at step 0. The arithmetic is that of the CPU's loops where they have FMA, operation by operation:
// the same bits. 16-bit types are rounded to nearest.
struct DrawArgs {
  const int64_t* rng;
  void* r;
  DType dtype;
  int64_t first;
  int64_t elements;
  uint32_t stream;
  float scale;
};

// Standard normal numbers. With w the words of Philox block e / 4 and u(w) = (w + 1) 2^-32, words
// (0, 1) make elements 4 k and 4 k + 1,
//   sqrt(-2 ln u(w0)) cos(2 pi w1 2^-32)   and   sqrt(-2 ln u(w0)) sin(2 pi w1 2^-32),
// and words (2, 3) elements 4 k + 2 and 4 k + 3 (G. Box, M. Muller, 1958).
int Normal(const DrawArgs& args, StreamHandle stream);

// Even numbers in [-1, 1): 2^-23 k - 1, with k the upper 24 bits of the element's word.
int Uniform(const DrawArgs& args, StreamHandle stream);

}  // namespace ft::cuda
