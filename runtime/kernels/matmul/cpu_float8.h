// Operands of a product, rounded to floats of 8 bits in the workspace.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/kernels/matmul/float8.h"

namespace ft::cpu {

// A stored matrix of bf16, and where it goes when its elements have been rounded: they are bf16 still.
struct Float8Rounding {
  const uint16_t* x = nullptr;
  int64_t rows = 0, columns = 0;
  ScaleBlocks blocks;
  Float8 type = Float8::kE4M3;
  uint16_t* result = nullptr;

  void Run(const Float8Loops& loops, int threads) const;
};

}  // namespace ft::cpu
