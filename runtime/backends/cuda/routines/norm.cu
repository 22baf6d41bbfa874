#include "runtime/backends/cuda/routines/gpu.h"
#include "runtime/backends/cuda/routines/hold_packed.h"
#include "runtime/backends/cuda/routines/norm.h"
#include "runtime/backends/cuda/routines/row_group.h"
#include "runtime/backends/cuda/routines/store.h"

namespace ft::cuda {
namespace {

constexpr int kWarpsPerBlock = 8;
constexpr int kMostThreads = 1024;

// A thread's packs of a row: thread, thread + threads, ...
template <typename T, int kWidth, int kPacks>
__device__ __forceinline__ void TakeRow(const T* x, int packs, int thread, int threads,
                                        Pack<T, kWidth> (&own)[kPacks]) {
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const int i = thread + k * threads;
    if (i < packs) own[k] = LoadSome<T, kWidth>(x + i * kWidth);
  }
}

// The same of the rounded sum of two rows, which is written too. Two packs of each are read before one is
// written, so that these reads are in flight at once.
template <typename T, int kWidth, int kPacks>
__device__ __forceinline__ void TakeSum(const T* a, const T* b, T* sum, int packs, int thread, int threads,
                                        Pack<T, kWidth> (&own)[kPacks]) {
  constexpr int kAtOnce = 2;
  static_assert(kPacks % kAtOnce == 0);
#pragma unroll
  for (int first = 0; first < kPacks; first += kAtOnce) {
    Pack<T, kWidth> x[kAtOnce], y[kAtOnce];
    TakeRow(a, packs, thread + first * threads, threads, x);
    TakeRow(b, packs, thread + first * threads, threads, y);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int i = thread + (first + k) * threads;
      if (i >= packs) continue;
#pragma unroll
      for (int j = 0; j < kWidth; ++j) {
        x[k].at[j] = FromFloat<T>(ToFloat(x[k].at[j]) + ToFloat(y[k].at[j]));
      }
      HoldPacked(x[k]);
      StoreSome<T, kWidth>(sum + i * kWidth, x[k]);
      own[first + k] = x[k];
    }
  }
}

// A row is read once and stays in the registers of a warp or of the block: thread t holds packs t,
// t + threads, ... of kWidth elements, at most kPacks. The variance is that of x - mean: nothing cancels.
template <typename T, int kWidth, int kPacks, bool kWarpRows, bool kLayer, bool kAdd>
__global__ __launch_bounds__(kWarpRows ? kWarp* kWarpsPerBlock : kMostThreads,
                             kWarpRows ? 4 : 1) void NormRows(AddNormArgs operands) {
  __shared__ GroupPartials partials[2];
  const NormArgs& args = operands.norm;
  const int threads = kWarpRows ? kWarp : static_cast<int>(blockDim.x);
  const int thread = static_cast<int>(threadIdx.x) % threads;
  const int64_t row = kWarpRows ? static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / kWarp
                                : static_cast<int64_t>(blockIdx.x);
  if (row >= args.rows) return;  // a whole warp; blocks are as many as rows
  const int packs = args.columns / kWidth;
  const float n = static_cast<float>(args.columns);
  Pack<T, kWidth> own[kPacks];
  const int64_t offset = row * args.columns;
  if constexpr (kAdd) {
    TakeSum(static_cast<const T*>(operands.a) + offset, static_cast<const T*>(operands.b) + offset,
            static_cast<T*>(operands.sum) + offset, packs, thread, threads, own);
  } else {
    TakeRow(static_cast<const T*>(args.x) + offset, packs, thread, threads, own);
  }
  float sum = 0.0f, mean = 0.0f;
  if constexpr (kLayer) {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (thread + k * threads >= packs) continue;
#pragma unroll
      for (int j = 0; j < kWidth; ++j) sum += ToFloat(own[k].at[j]);
    }
    mean = GroupSum<kWarpRows>(sum, partials[0]) / n;
  }
  float squares = 0.0f;
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    if (thread + k * threads >= packs) continue;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      const float centred = ToFloat(own[k].at[j]) - mean;
      squares = fmaf(centred, centred, squares);
    }
  }
  const float scale = 1.0f / sqrtf(GroupSum<kWarpRows>(squares, partials[1]) / n + args.eps);
  T* result = static_cast<T*>(args.result) + offset;
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const int i = thread + k * threads;
    if (i >= packs) continue;
    const Pack<T, kWidth> weight = LoadSome<T, kWidth>(static_cast<const T*>(args.weight) + i * kWidth);
    Pack<T, kWidth> bias = {};
    if constexpr (kLayer) bias = LoadSome<T, kWidth>(static_cast<const T*>(args.bias) + i * kWidth);
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      const float normal = (ToFloat(own[k].at[j]) - mean) * scale;
      own[k].at[j] = FromFloat<T>(kLayer ? fmaf(normal, ToFloat(weight.at[j]), ToFloat(bias.at[j]))
                                         : normal * ToFloat(weight.at[j]));
    }
    StoreSome<T, kWidth>(result + i * kWidth, own[k]);
  }
}

// Rows that do not fit in registers are read three times. One block for a row. A thread reads of a sum what
// it wrote itself.
template <typename T, bool kLayer, bool kAdd>
__global__ __launch_bounds__(kMostThreads) void NormWideRows(AddNormArgs operands) {
  const NormArgs& args = operands.norm;
  const int thread = static_cast<int>(threadIdx.x);
  const float n = static_cast<float>(args.columns);
  const int64_t offset = static_cast<int64_t>(blockIdx.x) * args.columns;
  if constexpr (kAdd) {
    const T *a = static_cast<const T*>(operands.a) + offset, *b = static_cast<const T*>(operands.b) + offset;
    for (int i = thread; i < args.columns; i += kMostThreads) {
      static_cast<T*>(operands.sum)[offset + i] = FromFloat<T>(ToFloat(a[i]) + ToFloat(b[i]));
    }
  }
  const T* x = static_cast<const T*>(args.x) + offset;
  T* result = static_cast<T*>(args.result) + offset;
  float mean = 0.0f;
  if constexpr (kLayer) {
    float sum = 0.0f;
    for (int i = thread; i < args.columns; i += kMostThreads) sum += ToFloat(x[i]);
    mean = BlockReduce<Sum, kMostThreads>(sum) / n;
  }
  float squares = 0.0f;
  for (int i = thread; i < args.columns; i += kMostThreads) {
    squares = fmaf(ToFloat(x[i]) - mean, ToFloat(x[i]) - mean, squares);
  }
  const float scale = 1.0f / sqrtf(BlockReduce<Sum, kMostThreads>(squares) / n + args.eps);
  for (int i = thread; i < args.columns; i += kMostThreads) {
    const float normal = (ToFloat(x[i]) - mean) * scale,
                weight = ToFloat(static_cast<const T*>(args.weight)[i]);
    result[i] = FromFloat<T>(kLayer ? fmaf(normal, weight, ToFloat(static_cast<const T*>(args.bias)[i]))
                                    : normal * weight);
  }
}

template <typename T, int kWidth, int kPacks, bool kWarpRows, bool kLayer, bool kAdd>
int LaunchNormRows(const AddNormArgs& args, StreamHandle stream) {
  LaunchShape shape;
  if (kWarpRows) {
    shape.grid_x = static_cast<unsigned>((args.norm.rows + kWarpsPerBlock - 1) / kWarpsPerBlock);
    shape.block_x = kWarp * kWarpsPerBlock;
  } else {
    const int wanted = (args.norm.columns / kWidth + kPacks - 1) / kPacks;
    shape.grid_x = static_cast<unsigned>(args.norm.rows);
    shape.block_x = static_cast<unsigned>((wanted + kWarp - 1) / kWarp * kWarp);
  }
  return Launch(&NormRows<T, kWidth, kPacks, kWarpRows, kLayer, kAdd>, shape, stream, args);
}

// How threads share a row depends on its width and on whether it can be read in packs, so a norm sums in the
// same order with and without the residual sum.
template <typename T, bool kLayer, bool kAdd>
int LaunchNorm(const AddNormArgs& args, StreamHandle stream) {
  constexpr int kWidth = 16 / sizeof(T);
  const int columns = args.norm.columns;
  bool packed = true;
  for (const void* rows : {args.norm.x, static_cast<const void*>(args.norm.result), args.a, args.b}) {
    packed = packed && CanPack<T>(rows, columns);
  }
  packed = packed && CanPack<T>(args.norm.weight, 0) && CanPack<T>(args.norm.bias, 0);
  const int packs = packed ? columns / kWidth : columns;
  if (packed && packs <= 4 * kWarp) return LaunchNormRows<T, kWidth, 4, true, kLayer, kAdd>(args, stream);
  if (packed && packs <= 4 * kMostThreads)
    return LaunchNormRows<T, kWidth, 4, false, kLayer, kAdd>(args, stream);
  if (!packed && packs <= 8 * kWarp) return LaunchNormRows<T, 1, 8, true, kLayer, kAdd>(args, stream);
  if (!packed && packs <= 8 * kMostThreads) return LaunchNormRows<T, 1, 8, false, kLayer, kAdd>(args, stream);
  LaunchShape shape;
  shape.grid_x = static_cast<unsigned>(args.norm.rows);
  shape.block_x = kMostThreads;
  return Launch(&NormWideRows<T, kLayer, kAdd>, shape, stream, args);
}

template <bool kAdd>
int LaunchAny(const AddNormArgs& args, StreamHandle stream) {
  if (args.norm.rows == 0) return 0;
  return WithFloatType(args.norm.dtype, [&]<typename T>() {
    return args.norm.bias != nullptr ? LaunchNorm<T, true, kAdd>(args, stream)
                                     : LaunchNorm<T, false, kAdd>(args, stream);
  });
}

}  // namespace

int Norm(const NormArgs& args, StreamHandle stream) {
  return LaunchAny<false>({nullptr, nullptr, nullptr, args}, stream);
}

int AddNorm(const AddNormArgs& args, StreamHandle stream) { return LaunchAny<true>(args, stream); }

}  // namespace ft::cuda
