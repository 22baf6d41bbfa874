// The Free Transformer's latent variable: H bits per position, sampled from logits (rows of H). All functions
// enqueue on `stream` and return a cudaError_t as int, 0 for success.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/routines/launch.h"
#include "runtime/base/dtype.h"

namespace ft::cuda {

// index[t] = sum_h b_h 2^h, b_h = u < sigmoid(logits[t, h]) in f64, u the Philox number of element
// (rank * rows + t) * bits + h at the micro-step; rng, in device memory, is seed, micro-step, rank.
struct SampleBitsArgs {
  const void* logits;
  const int64_t* rng;
  int32_t* index;
  int64_t rows;
  int bits;  // up to 31
  uint32_t stream;
};
int SampleBits(const SampleBitsArgs& args, DType dtype, StreamHandle stream);

// *kl = mean over rows of max(0, KL - kappa), in f64 until the end; blocks of rows are added in order.
// `partials` is as long as cuda_workspace::BitsKl says.
struct BitsKlArgs {
  const void* logits;
  double* partials;
  float* kl;
  int64_t rows;
  int bits;
  double kappa;
};
int BitsKl(const BitsKlArgs& args, DType dtype, StreamHandle stream);

struct BitsKlGradArgs {
  const float* dkl;
  const void* logits;
  void* dlogits;
  int64_t rows;
  int bits;
  double kappa;
};
int BitsKlGrad(const BitsKlGradArgs& args, DType dtype, StreamHandle stream);

// Largest number of code bits that one block of codes spans, and of all bits.
inline constexpr int kCodeBlockBits = 12;
inline constexpr int kMaxCodeBits = 20;

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
