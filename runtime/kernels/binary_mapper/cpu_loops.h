// The inner loop of binary_mapper_grad.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/loops.h"

namespace ft::cpu {

// Largest number of code bits that one block spans (workspace.h).
inline constexpr int kBlockBits = 12;

struct BinaryMapperLoops {
  // For one row and a block of 2^min(bits, kBlockBits) consecutive codes, whose upper bits are those of
  // `block`:
  //   sums[h] += sum_d g_d G_d u_h(d) for every bit h, and the result is sum_d g_d G_d,
  // with G_d = prod_h probability[h]^(u_h(d)) (1 - probability[h])^(1 - u_h(d)).
  double (*code_block)(const float* g, const double* probability, int bits, int64_t block, double* sums);
};

FT_DECLARE_FOR_EVERY_ISA(BinaryMapperLoops, kBinaryMapper)

}  // namespace ft::cpu
