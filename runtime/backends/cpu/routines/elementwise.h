// Loops over single elements. `begin` and `end` are elements; outputs may be the very buffers of inputs of
// the same extent.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/routines/routines.h"

namespace ft::cpu {

// r[i] = a[i] op b[i % period].
struct BinaryArgs {
  const float* a;
  const float* b;
  float* r;
  int64_t period;
};

struct UnaryArgs {
  const float* x;
  float* r;
  float factor;  // scale only
};

struct UnaryGradArgs {
  const float* dy;
  const float* x;
  float* dx;
};

struct SwigluArgs {
  const float* gate;
  const float* up;
  float* r;
};

struct SwigluGradArgs {
  const float* dy;
  const float* gate;
  const float* up;
  float* dgate;
  float* dup;
};

struct RopeArgs {
  const float* x;
  float* r;
  const float* cosine;  // [positions, half]
  const float* sine;    // [positions, half]; negated for the inverse
  int64_t positions;    // T
  int64_t heads;
  int64_t half;  // half of the head size
};

struct ElementwiseRoutines {
  void (*add)(const BinaryArgs&, int64_t begin, int64_t end);
  void (*mul)(const BinaryArgs&, int64_t begin, int64_t end);
  void (*scale)(const UnaryArgs&, int64_t begin, int64_t end);
  void (*gelu_tanh)(const UnaryArgs&, int64_t begin, int64_t end);
  void (*gelu_erf)(const UnaryArgs&, int64_t begin, int64_t end);
  void (*gelu_tanh_grad)(const UnaryGradArgs&, int64_t begin, int64_t end);
  void (*gelu_erf_grad)(const UnaryGradArgs&, int64_t begin, int64_t end);
  void (*swiglu)(const SwigluArgs&, int64_t begin, int64_t end);
  void (*swiglu_grad)(const SwigluGradArgs&, int64_t begin, int64_t end);
  // Rows (positions of all sequences) begin ... end - 1.
  void (*rope)(const RopeArgs&, int64_t begin, int64_t end);
};

FT_DECLARE_FOR_EVERY_ISA(ElementwiseRoutines, kElementwise)

}  // namespace ft::cpu
