// Layer norm and RMS norm, row by row. Tensors are f32, bf16 or f16, all of one type; statistics and sums for
// the gradients of weight and bias are f32.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/routines/element_type.h"
#include "runtime/backends/cpu/routines/routines.h"

namespace ft::cpu {

struct NormArgs {
  const void* x;       // [rows, columns]
  const void* weight;  // [columns]
  const void* bias;    // [columns]; layer norm only
  void* result;        // [rows, columns]
  int64_t columns;
  float eps;
};

struct NormGradArgs {
  const void* dy;  // [rows, columns]
  const void* x;
  const void* weight;
  void* dx;
  int64_t columns;
  float eps;
};

// One function for each type, at FloatIndex(dtype).
struct NormRoutines {
  // Rows begin ... end - 1.
  void (*layer_norm[kFloatTypes])(const NormArgs&, int64_t begin, int64_t end);
  void (*rms_norm[kFloatTypes])(const NormArgs&, int64_t begin, int64_t end);
  // Also writes these rows' sums for the gradients of weight and bias: [columns] each.
  void (*layer_norm_grad[kFloatTypes])(const NormGradArgs&, float* dweight, float* dbias, int64_t begin,
                                       int64_t end);
  void (*rms_norm_grad[kFloatTypes])(const NormGradArgs&, float* dweight, int64_t begin, int64_t end);
};

FT_DECLARE_FOR_EVERY_ISA(NormRoutines, kNorm)

}  // namespace ft::cpu
