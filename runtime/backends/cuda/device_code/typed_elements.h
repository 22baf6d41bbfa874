// Single elements of a tensor as plain device code computes with them: floats in f64, integers in 64 bits
// that wrap around.
#pragma once

#include <type_traits>

#include "runtime/backends/cuda/device_code/store.h"

namespace ft::cuda {

// What elements of type T are computed in.
template <typename T>
using ValueOf = std::conditional_t<std::is_integral_v<T>, int64_t, double>;

template <typename T>
__device__ __forceinline__ ValueOf<T> ToValue(T element) {
  if constexpr (std::is_integral_v<T>) {
    return element;
  } else {
    return ToFloat(element);
  }
}

// Sums of integers are taken without a sign, so that they wrap around.
struct SumOf {
  __device__ __forceinline__ double operator()(double a, double b) const { return a + b; }
  __device__ __forceinline__ int64_t operator()(int64_t a, int64_t b) const {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
};

// data[i] = value, rounded to f32 and then to a dtype, which is the same for all threads: a float.
__device__ __forceinline__ void PutValue(void* data, DType dtype, int64_t i, double value) {
  StoreAs(data, dtype, i, static_cast<float>(value));
}
// An integer.
__device__ __forceinline__ void PutValue(void* data, DType dtype, int64_t i, int64_t value) {
  if (dtype == DType::kI32) {
    static_cast<int32_t*>(data)[i] = static_cast<int32_t>(value);
  } else {
    static_cast<int64_t*>(data)[i] = value;
  }
}

// As WithFloatType, and with i32 and i64.
template <typename F>
int WithNumberType(DType dtype, F&& f) {
  if (dtype == DType::kI32) return f.template operator()<int32_t>();
  if (dtype == DType::kI64) return f.template operator()<int64_t>();
  return WithFloatType(dtype, f);
}

}  // namespace ft::cuda
