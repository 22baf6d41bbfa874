// Loops over single elements: out[...][i] = op(in[...][i]), in packs of up to 16 bytes, several of them in
// flight per thread. Outputs may be the very buffers of inputs of the same extent: a thread reads all that it
// overwrites before it writes.
#pragma once

#include "runtime/backends/cuda/device_code/element.h"

namespace ft::cuda {

// `Op` is a type with kInputs, kOutputs and operator()(const float (&in)[kInputs], float (&out)[kOutputs]).
template <typename Op, typename In, typename Out>
struct MapArgs {
  const In* in[Op::kInputs];
  Out* out[Op::kOutputs];
  int64_t elements;
  // The last input is read at i % period; only if it is shorter than the others. Below 2^31.
  uint32_t period;
  Op op;
};

namespace map_detail {

inline constexpr int kThreads = 256;
// Loads of a thread that are under way at once.
inline constexpr int kLoads = 4;

template <typename Op, int kWidth>
inline constexpr int kPacks = kWidth == 1        ? 8
                              : Op::kInputs == 1 ? kLoads
                                                 : kLoads / 2;

template <typename T, int kWidth>
__device__ __forceinline__ Pack<T, kWidth> Read(const T* from, int64_t pack) {
  return reinterpret_cast<const Pack<T, kWidth>*>(from)[pack];
}

// Elements of a block: kThreads * kPacks packs of kWidth. The last block also does the rest.
template <typename Op, typename In, typename Out, int kWidth, bool kSuffix>
__global__ void __launch_bounds__(kThreads) Map(MapArgs<Op, In, Out> args) {
  constexpr int kInputs = Op::kInputs, kOutputs = Op::kOutputs, kCount = kPacks<Op, kWidth>;
  const int64_t packs = args.elements / kWidth;
  const int64_t tile = static_cast<int64_t>(blockIdx.x) * (kThreads * kCount);
  const uint32_t period = kSuffix ? args.period / kWidth : 1;
  const uint32_t begin = kSuffix ? static_cast<uint32_t>(tile % period) : 0;
  Pack<In, kWidth> in[kCount][kInputs];
#pragma unroll
  for (int p = 0; p < kCount; ++p) {
    const uint32_t local = threadIdx.x + p * kThreads;
    if (tile + local >= packs) continue;
#pragma unroll
    for (int i = 0; i < kInputs; ++i) {
      const bool wraps = kSuffix && i == kInputs - 1;
      in[p][i] = Read<In, kWidth>(args.in[i], wraps ? (begin + local) % period : tile + local);
    }
  }
#pragma unroll
  for (int p = 0; p < kCount; ++p) {
    const uint32_t local = threadIdx.x + p * kThreads;
    if (tile + local >= packs) continue;
    Pack<Out, kWidth> out[kOutputs];
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      float x[kInputs], y[kOutputs];
#pragma unroll
      for (int i = 0; i < kInputs; ++i) x[i] = ToFloat(in[p][i].at[j]);
      args.op(x, y);
#pragma unroll
      for (int i = 0; i < kOutputs; ++i) out[i].at[j] = FromFloat<Out>(y[i]);
    }
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) {
      reinterpret_cast<Pack<Out, kWidth>*>(args.out[i])[tile + local] = out[i];
    }
  }
  if constexpr (kWidth > 1 && !kSuffix) {  // a repeated input, and so all of them, is whole packs
    const int64_t at = packs * kWidth + threadIdx.x;
    if (blockIdx.x + 1 != gridDim.x || at >= args.elements) return;
    float x[kInputs], y[kOutputs];
#pragma unroll
    for (int i = 0; i < kInputs; ++i) x[i] = ToFloat(args.in[i][at]);
    args.op(x, y);
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) args.out[i][at] = FromFloat<Out>(y[i]);
  }
}

template <typename Op, typename In, typename Out, int kWidth, bool kSuffix>
int LaunchWidth(const MapArgs<Op, In, Out>& args, StreamHandle stream) {
  const int64_t packs = args.elements / kWidth;
  constexpr int kTile = kThreads * kPacks<Op, kWidth>;
  const int64_t blocks = packs == 0 ? 1 : (packs + kTile - 1) / kTile;
  return Launch(Map<Op, In, Out, kWidth, kSuffix>,
                {.grid_x = static_cast<unsigned>(blocks), .block_x = kThreads}, stream, args);
}

template <typename T, int kWidth>
inline bool Aligned(const T* address) {
  return reinterpret_cast<uintptr_t>(address) % (sizeof(T) * kWidth) == 0;
}

}  // namespace map_detail

template <bool kSuffix = false, typename Op, typename In, typename Out>
int LaunchMap(const MapArgs<Op, In, Out>& args, StreamHandle stream) {
  constexpr int kWidth = 16 / (sizeof(In) > sizeof(Out) ? sizeof(In) : sizeof(Out));
  if (args.elements == 0) return 0;
  bool packs = !kSuffix || args.period % kWidth == 0;
  for (const In* in : args.in) packs = packs && map_detail::Aligned<In, kWidth>(in);
  for (const Out* out : args.out) packs = packs && map_detail::Aligned<Out, kWidth>(out);
  if (packs) return map_detail::LaunchWidth<Op, In, Out, kWidth, kSuffix>(args, stream);
  return map_detail::LaunchWidth<Op, In, Out, 1, kSuffix>(args, stream);
}

}  // namespace ft::cuda
