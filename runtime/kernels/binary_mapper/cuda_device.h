// The Free Transformer's latent variable: H bits per position, sampled from logits (rows of H). All functions
// enqueue on `stream` and return a cudaError_t as int, 0 for success.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/device_code/launch.h"
#include "runtime/base/dtype.h"
#include "runtime/base/workspace.h"

namespace ft::cuda {

// Largest number of code bits that one block of codes spans.
inline constexpr int kCodeBlockBits = 12;

// One block of 2^min(bits, 12) consecutive codes' share of the straight-through gradient, for every row:
//   sums[row, h] (+)= sum_d g_d G_d (u_h(d) - s_h), over the codes d whose upper bits are those of `block`,
// with s = sigmoid(logits) and G_d = prod_h s_h^(u_h(d)) (1 - s_h)^(1 - u_h(d)). Block 0 begins the sums, the
// last one writes them to dlogits. A code's place in a sum depends on the code alone.
struct CodeBlockArgs {
  const float* g;  // [rows, codes of a block]
  const void* logits;
  float* sums;  // [rows, bits]
  void* dlogits;
  int64_t rows;
  int bits;
  int64_t block;
};
int AddCodeBlock(const CodeBlockArgs& args, DType dtype, StreamHandle stream);

}  // namespace ft::cuda
