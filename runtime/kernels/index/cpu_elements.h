// Single elements of a tensor as plain kernels compute with them: floats in f64, integers in 64 bits that
// wrap around.
#pragma once

#include <cmath>
#include <cstdint>

#include "runtime/base/dtype.h"
#include "runtime/base/round_float.h"

namespace ft::cpu {

struct F32Elements {
  static double Get(const void* x, int64_t i) { return static_cast<const float*>(x)[i]; }
};
struct BF16Elements {
  static double Get(const void* x, int64_t i) { return BF16ToFloat(static_cast<const uint16_t*>(x)[i]); }
};
struct F16Elements {
  static double Get(const void* x, int64_t i) { return F16ToFloat(static_cast<const uint16_t*>(x)[i]); }
};
struct I32Elements {
  static int64_t Get(const void* x, int64_t i) { return static_cast<const int32_t*>(x)[i]; }
};
struct I64Elements {
  static int64_t Get(const void* x, int64_t i) { return static_cast<const int64_t*>(x)[i]; }
};

// Calls f.template operator()<Elements>() with those of a float or an integer type.
template <typename F>
auto WithElements(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kBF16:
      return f.template operator()<BF16Elements>();
    case DType::kF16:
      return f.template operator()<F16Elements>();
    case DType::kI32:
      return f.template operator()<I32Elements>();
    case DType::kI64:
      return f.template operator()<I64Elements>();
    default:
      return f.template operator()<F32Elements>();
  }
}

inline double Sum(double a, double b) { return a + b; }
inline int64_t Sum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

// Rounded to the type.
inline void PutElement(void* to, DType dtype, int64_t index, double value) {
  const auto rounded = static_cast<float>(value);
  if (dtype == DType::kBF16) {
    static_cast<uint16_t*>(to)[index] = RoundToBF16(rounded);
  } else if (dtype == DType::kF16) {
    static_cast<uint16_t*>(to)[index] = RoundToF16(rounded);
  } else {
    static_cast<float*>(to)[index] = rounded;
  }
}
inline void PutElement(void* to, DType dtype, int64_t index, int64_t value) {
  if (dtype == DType::kI32) {
    static_cast<int32_t*>(to)[index] = static_cast<int32_t>(value);
  } else {
    static_cast<int64_t*>(to)[index] = value;
  }
}

}  // namespace ft::cpu
