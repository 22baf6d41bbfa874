// Layer norm and RMS norm, row by row.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/routines/routines.h"

namespace ft::cpu {

struct NormArgs {
  const float* x;       // [rows, columns]
  const float* weight;  // [columns]
  const float* bias;    // [columns]; layer norm only
  float* result;        // [rows, columns]
  int64_t columns;
  float eps;
};

struct NormGradArgs {
  const float* dy;  // [rows, columns]
  const float* x;
  const float* weight;
  float* dx;
  int64_t columns;
  float eps;
};

struct NormRoutines {
  // Rows begin ... end - 1.
  void (*layer_norm)(const NormArgs&, int64_t begin, int64_t end);
  void (*rms_norm)(const NormArgs&, int64_t begin, int64_t end);
  // Also writes these rows' sums for the gradients of weight and bias: [columns] each.
  void (*layer_norm_grad)(const NormGradArgs&, float* dweight, float* dbias, int64_t begin, int64_t end);
  void (*rms_norm_grad)(const NormGradArgs&, float* dweight, int64_t begin, int64_t end);
};

FT_DECLARE_FOR_EVERY_ISA(NormRoutines, kNorm)

}  // namespace ft::cpu
