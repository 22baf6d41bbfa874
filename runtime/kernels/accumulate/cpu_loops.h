// Sums over micro-steps. Tensors are f32, bf16 or f16, all of one type; arithmetic is in f32 and each result
// is rounded once.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/loops.h"
#include "runtime/backends/cpu/simd/element_type.h"

namespace ft::cpu {

// state[i] += x[i], or y[i] = state[i] + x[i] and state[i] = 0.
struct AccumulateArgs {
  const void* x;
  void* state;
  void* y;  // accumulated only
};

// Elements begin ... end - 1. One function for each type, at FloatIndex(dtype).
struct AccumulateLoops {
  void (*accumulate[kFloatTypes])(const AccumulateArgs&, int64_t begin, int64_t end);
  void (*accumulated[kFloatTypes])(const AccumulateArgs&, int64_t begin, int64_t end);
};

FT_DECLARE_FOR_EVERY_ISA(AccumulateLoops, kAccumulate)

}  // namespace ft::cpu
