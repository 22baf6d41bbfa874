// Between f32 and the types that tensors have.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/loops.h"
#include "runtime/backends/cpu/simd/element_type.h"

namespace ft::cpu {

// One function for each type of the void pointer, at FloatIndex(dtype). Elements begin ... begin + n - 1 of
// the tensor.
struct ConvertLoops {
  void (*to_float[kFloatTypes])(const void* x, int64_t begin, int64_t n, float* result);
  // To the nearest, ties to even.
  void (*from_float[kFloatTypes])(const float* x, void* result, int64_t begin, int64_t n);
  void (*fill)(float* x, float value, int64_t begin, int64_t end);
};

FT_DECLARE_FOR_EVERY_ISA(ConvertLoops, kConvert)

}  // namespace ft::cpu
