// The types that kernels compute on, and how tables of loops are ordered by them.
#pragma once

#include <cstdint>

#include "runtime/base/dtype.h"

namespace ft::cpu {

// 16-bit numbers in memory: the upper half of an f32, and IEEE binary16. Arithmetic is done in f32.
struct BFloat16 {
  uint16_t bits;
};
struct Float16 {
  uint16_t bits;
};

// A loop that works on several types has one function for each: f32, bf16, f16, at these places.
inline constexpr int kFloatTypes = 3;
constexpr int FloatIndex(DType dtype) { return static_cast<int>(dtype); }
static_assert(FloatIndex(DType::kF32) == 0 && FloatIndex(DType::kBF16) == 1 && FloatIndex(DType::kF16) == 2);

// Initialises such a table from a function template.
#define FT_EVERY_FLOAT(Function) {Function<float>, Function<BFloat16>, Function<Float16>}

}  // namespace ft::cpu
