// Rotations of pairs of a head. Tensors are f32, bf16 or f16, both of one type; the result may be the very
// buffer of x. Arithmetic is in f32 and each result is rounded once.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/loops.h"
#include "runtime/backends/cpu/simd/element_type.h"

namespace ft::cpu {

struct RopeArgs {
  const void* x;
  void* r;
  const float* cosine;  // [positions, half]
  const float* sine;    // [positions, half]; negated for the inverse
  int64_t positions;    // T
  int64_t heads;
  int64_t half;  // half of the head size
};

// One function for each type, at FloatIndex(dtype).
struct RopeLoops {
  // Rows (positions of all sequences) begin ... end - 1.
  void (*rope[kFloatTypes])(const RopeArgs&, int64_t begin, int64_t end);
};

FT_DECLARE_FOR_EVERY_ISA(RopeLoops, kRope)

}  // namespace ft::cpu
