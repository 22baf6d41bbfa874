// The elementwise ops of runtime/base/elementwise.def for single elements, and elements in memory. For one
// translation unit each.
#pragma once

#include <cstdint>
#include <type_traits>

#include "runtime/backends/cuda/device_code/element.h"
#include "runtime/backends/cuda/device_code/trigonometry.h"
#include "runtime/base/dtype.h"
#include "runtime/base/elementwise.h"

namespace ft::cuda {

// The letters and functions of the table for single elements. Whatever is not a float is one of these.
namespace primitive {

// 64 bits that wrap around.
struct Integer {
  int64_t value;
};

__device__ __forceinline__ Integer Wrapped(uint64_t bits) { return {static_cast<int64_t>(bits)}; }
__device__ __forceinline__ uint64_t Bits(Integer a) { return static_cast<uint64_t>(a.value); }
__device__ __forceinline__ Integer operator+(Integer a, Integer b) { return Wrapped(Bits(a) + Bits(b)); }
__device__ __forceinline__ Integer operator-(Integer a, Integer b) { return Wrapped(Bits(a) - Bits(b)); }
__device__ __forceinline__ Integer operator*(Integer a, Integer b) { return Wrapped(Bits(a) * Bits(b)); }
__device__ __forceinline__ Integer operator-(Integer a) { return Wrapped(0 - Bits(a)); }
// Rounded down; b is positive.
__device__ __forceinline__ Integer operator/(Integer a, Integer b) {
  const int64_t quotient = a.value / b.value;
  return {quotient - static_cast<int64_t>(a.value < quotient * b.value)};
}
__device__ __forceinline__ bool operator==(Integer a, Integer b) { return a.value == b.value; }
__device__ __forceinline__ bool operator!=(Integer a, Integer b) { return a.value != b.value; }
__device__ __forceinline__ bool operator<(Integer a, Integer b) { return a.value < b.value; }
__device__ __forceinline__ bool operator<=(Integer a, Integer b) { return a.value <= b.value; }
__device__ __forceinline__ bool operator>(Integer a, Integer b) { return a.value > b.value; }
__device__ __forceinline__ bool operator>=(Integer a, Integer b) { return a.value >= b.value; }
__device__ __forceinline__ bool IsNan(Integer) { return false; }
__device__ __forceinline__ Integer Floor(Integer a) { return a; }
__device__ __forceinline__ Integer Abs(Integer a) { return a.value < 0 ? -a : a; }
__device__ __forceinline__ Integer Sign(Integer a) {
  return {static_cast<int64_t>(a.value > 0) - static_cast<int64_t>(a.value < 0)};
}

template <typename T>
__device__ __forceinline__ T Select(bool condition, T a, T b) {
  return condition ? a : b;
}

__device__ __forceinline__ float NotANumber() { return __uint_as_float(0x7FC00000u); }
__device__ __forceinline__ bool IsNan(float a) { return a != a; }
__device__ __forceinline__ float Abs(float a) { return fabsf(a); }
__device__ __forceinline__ float Sign(float a) { return a > 0.0f ? 1.0f : a < 0.0f ? -1.0f : a; }
__device__ __forceinline__ float Floor(float a) { return floorf(a); }
__device__ __forceinline__ float Sqrt(float a) { return sqrtf(a); }
__device__ __forceinline__ float Exp(float a) { return expf(a); }
__device__ __forceinline__ float Log(float a) { return logf(a); }
__device__ __forceinline__ float Tanh(float a) { return tanhf(a); }
__device__ __forceinline__ float Erf(float a) { return erff(a); }
__device__ __forceinline__ float Sigmoid(float a) { return 1.0f / (1.0f + expf(-a)); }
__device__ __forceinline__ float NormalCdf(float a) { return 0.5f * erfcf(-a * 0.70710678118654752f); }

// Turns are counted in f64, as on the CPU: NaN for what is too large for that.
__device__ __forceinline__ CosSin CosSinOf(float a) {
  if (!(fabsf(a) < 0x1p30f)) return {NotANumber(), NotANumber()};
  const double turns = static_cast<double>(a) * 0.63661977236758134;  // quarter ones: 2 / pi
  const double whole = rint(turns);
  return OfQuarterTurns(static_cast<uint32_t>(static_cast<int32_t>(whole)) & 3,
                        static_cast<float>(turns - whole));
}
__device__ __forceinline__ float Sin(float a) { return CosSinOf(a).sine; }
__device__ __forceinline__ float Cos(float a) { return CosSinOf(a).cosine; }

// Products for integers up to 16.
__device__ __forceinline__ float Pow(float a, double exponent) {
  const double size = fabs(exponent);
  const bool whole = rint(exponent) == exponent;
  if (whole && size <= 16) {
    float product = 1.0f;
    for (int i = 0; i < static_cast<int>(size); ++i) product *= a;
    return exponent < 0 ? 1.0f / product : product;
  }
  if (a < 0.0f && !whole) return NotANumber();
  return powf(a, static_cast<float>(exponent));
}

// Constants of rows, in the type of their operands.
template <typename T>
struct Constant {
  template <typename Number>
  __device__ __forceinline__ T operator()(Number number) const {
    if constexpr (std::is_same_v<T, float>) return static_cast<float>(number);
    if constexpr (std::is_same_v<T, Integer>) return {static_cast<int64_t>(number)};
  }
};

#define FT_ELEMENTWISE(Name, mnemonic, domain, operands, parameters, value, gradients, summary) \
  struct Name##Row {                                                                            \
    template <typename A, typename T>                                                           \
    __device__ __forceinline__ static auto Of([[maybe_unused]] A a, [[maybe_unused]] T b,       \
                                              [[maybe_unused]] T c, [[maybe_unused]] double p,  \
                                              [[maybe_unused]] double q) {                      \
      [[maybe_unused]] const Constant<T> K;                                                     \
      return value;                                                                             \
    }                                                                                           \
  };
#include "runtime/base/elementwise.def"
#undef FT_ELEMENTWISE

__device__ __forceinline__ bool IsTrue(float a) { return a != 0.0f; }
__device__ __forceinline__ bool IsTrue(Integer a) { return a.value != 0; }

// A result as one of type T: truth values are 0 and 1.
template <typename T>
__device__ __forceinline__ T Put(T value) {
  return value;
}
template <typename T>
__device__ __forceinline__ T Put(bool value) {
  return Constant<T>()(value);
}

template <typename Row, ElementwiseDomain kDomain, typename T>
__device__ __forceinline__ T OfRow(const T (&in)[kMaxElementwiseOperands], double p, double q) {
  using enum ElementwiseDomain;
  constexpr bool kFloats = std::is_same_v<T, float>;
  if constexpr (kDomain == kSelect) {
    return Put<T>(Row::Of(IsTrue(in[0]), in[1], in[2], p, q));
  } else if constexpr (kDomain == kLogic && !kFloats) {
    return Put<T>(Row::Of(IsTrue(in[0]), IsTrue(in[1]), IsTrue(in[2]), p, q));
  } else if constexpr (kDomain == kNumber || kDomain == kCompare ||
                       kDomain == (kFloats ? kFloat : kInteger)) {
    return Put<T>(Row::Of(in[0], in[1], in[2], p, q));
  }
  return in[0];  // of a type that the row does not have
}

template <typename T>
__device__ __forceinline__ T Of(Elementwise kind, const T (&in)[kMaxElementwiseOperands], double p,
                                double q) {
  switch (kind) {
#define FT_ELEMENTWISE(Name, mnemonic, domain, operands, parameters, value, gradients, summary) \
  case Elementwise::k##Name:                                                                    \
    return OfRow<Name##Row, ElementwiseDomain::domain>(in, p, q);
#include "runtime/base/elementwise.def"
#undef FT_ELEMENTWISE
  }
  return in[0];
}

// Towards zero; the ends for what is beyond them, 0 for NaN.
__device__ __forceinline__ int64_t Truncated(float value, int64_t lowest, int64_t largest) {
  const float end = -static_cast<float>(lowest);  // one above the largest
  if (IsNan(value)) return 0;
  if (value >= end) return largest;
  return value <= -end ? lowest : static_cast<int64_t>(value);
}

__device__ __forceinline__ Integer ToInteger(float value, DType to) {
  return {to == DType::kI32 ? Truncated(value, INT32_MIN, INT32_MAX)
                            : Truncated(value, INT64_MIN, INT64_MAX)};
}
__device__ __forceinline__ Integer ToInteger(Integer value, DType) { return value; }
__device__ __forceinline__ float AsFloat(float value) { return value; }
__device__ __forceinline__ float AsFloat(Integer value) { return static_cast<float>(value.value); }

// value as a number of type To, which a tensor of type `to` holds.
template <typename To, typename From>
__device__ __forceinline__ To Converted(From value, DType to) {
  if constexpr (std::is_same_v<To, float>) {
    return AsFloat(value);
  } else {
    return to == DType::kU8 ? Put<Integer>(IsTrue(value)) : ToInteger(value, to);
  }
}

// Elements as they lie in memory, so that several are under way at once before any is widened: with as many
// bits as T's have at most.
template <typename T>
using BitsOf = std::conditional_t<std::is_same_v<T, float>, uint32_t, uint64_t>;

template <typename T>
__device__ __forceinline__ BitsOf<T> Load(const void* data, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32:
      return static_cast<const uint32_t*>(data)[i];
    case DType::kBF16:
    case DType::kF16:
      return static_cast<const uint16_t*>(data)[i];
    case DType::kU8:
      return static_cast<const uint8_t*>(data)[i];
    default:
      return static_cast<BitsOf<T>>(static_cast<const uint64_t*>(data)[i]);
  }
}

__device__ __forceinline__ float Widened(uint32_t bits, DType dtype) {
  if (dtype == DType::kF32) return __uint_as_float(bits);
  if (dtype == DType::kBF16) return ToFloat(BF16{static_cast<uint16_t>(bits)});
  if (dtype == DType::kF16) return ToFloat(F16{static_cast<uint16_t>(bits)});
  return static_cast<float>(bits);
}
__device__ __forceinline__ Integer Widened(uint64_t bits, DType dtype) {
  return {dtype == DType::kI32 ? static_cast<int32_t>(bits) : static_cast<int64_t>(bits)};
}

__device__ __forceinline__ void Store(void* data, DType dtype, int64_t i, float value) {
  if (dtype == DType::kF32) {
    static_cast<uint32_t*>(data)[i] = __float_as_uint(value);
  } else if (dtype == DType::kBF16) {
    static_cast<uint16_t*>(data)[i] = FromFloat<BF16>(value).bits;
  } else if (dtype == DType::kF16) {
    static_cast<uint16_t*>(data)[i] = FromFloat<F16>(value).bits;
  } else {
    static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(value);
  }
}
__device__ __forceinline__ void Store(void* data, DType dtype, int64_t i, Integer value) {
  if (dtype == DType::kI64) {
    static_cast<uint64_t*>(data)[i] = Bits(value);
  } else if (dtype == DType::kI32) {
    static_cast<uint32_t*>(data)[i] = static_cast<uint32_t>(value.value);
  } else {
    static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(value.value);
  }
}

}  // namespace primitive

}  // namespace ft::cuda
