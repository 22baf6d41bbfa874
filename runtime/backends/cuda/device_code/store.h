// Reads and writes of a width chosen at compile time, of elements whose type may be known at run time only.
#pragma once

#include "runtime/backends/cuda/device_code/element.h"

namespace ft::cuda {

// kWidth elements at once; the address is a multiple of their size.
template <typename T, int kWidth>
__device__ __forceinline__ Pack<T, kWidth> LoadSome(const T* address) {
  return *reinterpret_cast<const Pack<T, kWidth>*>(address);
}
template <typename T, int kWidth>
__device__ __forceinline__ void StoreSome(T* address, const Pack<T, kWidth>& pack) {
  *reinterpret_cast<Pack<T, kWidth>*>(address) = pack;
}

// data[i] = value, rounded to a float dtype, which is the same for all threads.
__device__ __forceinline__ void StoreAs(void* data, DType dtype, int64_t i, float value) {
  if (dtype == DType::kBF16) {
    static_cast<BF16*>(data)[i] = FromFloat<BF16>(value);
  } else if (dtype == DType::kF16) {
    static_cast<F16*>(data)[i] = FromFloat<F16>(value);
  } else {
    static_cast<float*>(data)[i] = value;
  }
}

// data[i + j] = values[j], or += with `add`, in f32 and rounded once, for a float dtype that is the same for
// all threads. With more than one value, data[i] is at a multiple of 16 bytes or of their size.
template <typename T, int kWidth>
__device__ __forceinline__ void StoreRun(T* data, const float (&values)[kWidth], bool add) {
  constexpr int kMost = 16 / sizeof(T), kStep = kWidth < kMost ? kWidth : kMost;
#pragma unroll
  for (int k = 0; k < kWidth; k += kStep) {
    Pack<T, kStep> pack = {};
    if (add) pack = LoadSome<T, kStep>(data + k);
#pragma unroll
    for (int j = 0; j < kStep; ++j) {
      pack.at[j] = FromFloat<T>(add ? ToFloat(pack.at[j]) + values[k + j] : values[k + j]);
    }
    StoreSome<T, kStep>(data + k, pack);
  }
}
template <int kWidth>
__device__ __forceinline__ void StoreRunAs(void* data, DType dtype, int64_t i, const float (&values)[kWidth],
                                           bool add) {
  if (dtype == DType::kBF16) {
    StoreRun(static_cast<BF16*>(data) + i, values, add);
  } else if (dtype == DType::kF16) {
    StoreRun(static_cast<F16*>(data) + i, values, add);
  } else {
    StoreRun(static_cast<float*>(data) + i, values, add);
  }
}

// values[j] = data[i + j] for a float dtype that is the same for all threads, at such addresses as StoreRun
// has.
template <typename T, int kWidth>
__device__ __forceinline__ void LoadRun(const T* data, float (&values)[kWidth]) {
  constexpr int kMost = 16 / sizeof(T), kStep = kWidth < kMost ? kWidth : kMost;
#pragma unroll
  for (int k = 0; k < kWidth; k += kStep) {
    const Pack<T, kStep> pack = LoadSome<T, kStep>(data + k);
#pragma unroll
    for (int j = 0; j < kStep; ++j) values[k + j] = ToFloat(pack.at[j]);
  }
}
template <int kWidth>
__device__ __forceinline__ void LoadRunAs(const void* data, DType dtype, int64_t i, float (&values)[kWidth]) {
  if (dtype == DType::kBF16) {
    LoadRun(static_cast<const BF16*>(data) + i, values);
  } else if (dtype == DType::kF16) {
    LoadRun(static_cast<const F16*>(data) + i, values);
  } else {
    LoadRun(static_cast<const float*>(data) + i, values);
  }
}

// data[i] of a float dtype, which is the same for all threads.
__device__ __forceinline__ float LoadAs(const void* data, DType dtype, int64_t i) {
  if (dtype == DType::kBF16) return ToFloat(static_cast<const BF16*>(data)[i]);
  if (dtype == DType::kF16) return ToFloat(static_cast<const F16*>(data)[i]);
  return static_cast<const float*>(data)[i];
}

}  // namespace ft::cuda
