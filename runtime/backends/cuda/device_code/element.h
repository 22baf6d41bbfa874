// Element types on the device, and runs of 16 bytes of them.
#pragma once

#include "runtime/backends/cuda/device_code/gpu.h"
#include "runtime/base/dtype.h"
#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#else
#include "runtime/base/round_float.h"
#endif

namespace ft::cuda {

struct BF16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

__device__ __forceinline__ float ToFloat(float x) { return x; }
__device__ __forceinline__ float ToFloat(BF16 x) {
  return __uint_as_float(static_cast<uint32_t>(x.bits) << 16);
}
#if defined(__CUDACC__)
__device__ __forceinline__ float ToFloat(F16 x) { return __half2float(__ushort_as_half(x.bits)); }
#else
inline float ToFloat(F16 x) { return ::ft::F16ToFloat(x.bits); }
#endif

// Rounds to nearest, ties to even.
template <typename T>
__device__ __forceinline__ T FromFloat(float x);
template <>
__device__ __forceinline__ float FromFloat<float>(float x) {
  return x;
}
#if defined(__CUDACC__)
template <>
__device__ __forceinline__ BF16 FromFloat<BF16>(float x) {
  return {__bfloat16_as_ushort(__float2bfloat16_rn(x))};
}
template <>
__device__ __forceinline__ F16 FromFloat<F16>(float x) {
  return {__half_as_ushort(__float2half_rn(x))};
}
#else
template <>
inline BF16 FromFloat<BF16>(float x) {
  return {RoundToBF16(x)};
}
template <>
inline F16 FromFloat<F16>(float x) {
  return {RoundToF16(x)};
}
#endif

// kWidth elements that are read or written at once; 16 bytes unless kWidth says otherwise. The address is a
// multiple of the size.
template <typename T, int kWidth = 16 / sizeof(T)>
struct alignas(sizeof(T) * kWidth) Pack {
  T at[kWidth];
};

template <typename T>
__device__ __forceinline__ Pack<T> LoadPack(const T* address) {
  return *reinterpret_cast<const Pack<T>*>(address);
}
template <typename T>
__device__ __forceinline__ void StorePack(T* address, const Pack<T>& pack) {
  *reinterpret_cast<Pack<T>*>(address) = pack;
}

// Whether rows that are `stride` elements apart, from `address` on, can all be read in packs.
template <typename T>
inline bool CanPack(const void* address, int64_t stride) {
  return reinterpret_cast<uintptr_t>(address) % 16 == 0 && stride * sizeof(T) % 16 == 0;
}

// Calls f.template operator()<T>() with the device type of a float DType; f returns an int (a cudaError_t).
template <typename F>
int WithFloatType(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kBF16:
      return f.template operator()<BF16>();
    case DType::kF16:
      return f.template operator()<F16>();
    default:
      return f.template operator()<float>();
  }
}

}  // namespace ft::cuda
