// Elements of bf16, rounded to floats of 8 bits.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/loops.h"
#include "runtime/base/float8.h"

namespace ft::cpu {

// Magnitudes are bits of a bf16 without its sign; what is not finite has none.
struct Float8Loops {
  // The largest of n elements; 0 for none.
  uint16_t (*greatest)(const uint16_t* x, int64_t n);
  // Of n columns: greatest[i] is at least that of x[i].
  void (*greatest_of_each)(const uint16_t* x, int64_t n, uint16_t* greatest);
  // result[i] = round(x[i] * scale) / scale, as bf16: exact. `inverse` is 1 / scale.
  void (*round)(const uint16_t* x, int64_t n, Float8 type, float scale, float inverse, uint16_t* result);
  // The same with scale[i] and inverse[i].
  void (*round_each)(const uint16_t* x, int64_t n, Float8 type, const float* scale, const float* inverse,
                     uint16_t* result);
};

FT_DECLARE_FOR_EVERY_ISA(Float8Loops, kFloat8Rounding)

}  // namespace ft::cpu
