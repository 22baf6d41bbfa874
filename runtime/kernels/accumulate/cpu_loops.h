// Sums in f32 of what is f32, bf16 or f16.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/loops.h"
#include "runtime/backends/cpu/simd/element_type.h"

namespace ft::cpu {

// One function for each type of x, at FloatIndex(dtype).
struct AccumulateLoops {
  // sum[i] += x[begin + i] for i < n.
  void (*add_into[kFloatTypes])(const void* x, int64_t begin, int64_t n, float* sum);
};

FT_DECLARE_FOR_EVERY_ISA(AccumulateLoops, kAccumulate)

}  // namespace ft::cpu
