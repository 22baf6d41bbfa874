// Loops over single elements. `begin` and `end` are elements; outputs may be the very buffers of inputs of
// the same extent. Tensors are f32, bf16 or f16, all of one type; arithmetic is in f32 and each result is
// rounded once.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/routines/element_type.h"
#include "runtime/backends/cpu/routines/routines.h"

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

// state[i] += x[i], or y[i] = state[i] + x[i] and state[i] = 0.
struct AccumulateArgs {
  const void* x;
  void* state;
  void* y;  // accumulated only
};

// One function for each type, at FloatIndex(dtype).
struct ElementwiseRoutines {
  // Rows (positions of all sequences) begin ... end - 1.
  void (*rope[kFloatTypes])(const RopeArgs&, int64_t begin, int64_t end);
  void (*accumulate[kFloatTypes])(const AccumulateArgs&, int64_t begin, int64_t end);
  void (*accumulated[kFloatTypes])(const AccumulateArgs&, int64_t begin, int64_t end);
};

FT_DECLARE_FOR_EVERY_ISA(ElementwiseRoutines, kElementwise)

}  // namespace ft::cpu
