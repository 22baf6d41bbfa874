#include "runtime/backends/cuda/device_code/element.h"
#include "runtime/backends/cuda/device_code/reduce.h"
#include "runtime/kernels/linear_cross_entropy/cuda_device.h"
#include "runtime/kernels/loss_count/cuda_count.h"

namespace ft::cuda {
namespace {

constexpr float kLowest = -3.40282347e38f;
// softmax - onehot is in [-1, 1]: the largest power of two that f16 holds with it.
constexpr float kNarrowScale = 32768.0f;

__global__ void __launch_bounds__(kOneBlock) LossScaleKernel(LossScaleArgs args) {
  const int counted = CountTargets(args.targets, args.rows);
  if (threadIdx.x != 0) return;
  const float dloss = args.factor == nullptr ? args.dloss : args.dloss * *args.factor;
  const float scale = dloss / static_cast<float>(counted > 0 ? counted : 1);
  *args.result = {args.narrow ? kNarrowScale : scale, args.narrow ? scale / kNarrowScale : 1.0f, counted};
}

__global__ void __launch_bounds__(kOneBlock)
    MeanLossKernel(const float* losses, int rows, const LossScale* scale, float* result) {
  double sum = 0.0;
#pragma unroll 8
  for (int i = static_cast<int>(threadIdx.x); i < rows; i += kOneBlock) sum += static_cast<double>(losses[i]);
  sum = BlockReduce<Sum, kOneBlock>(sum);
  if (threadIdx.x != 0) return;
  *result = scale->counted == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(scale->counted));
}

// A row in three parts: elements before the first whole pack, packs, elements after the last.
struct Parts {
  int head, packs;
};
template <typename T>
__device__ __forceinline__ Parts PartsOf(const T* row, int columns, bool packed) {
  constexpr int kWidth = 16 / sizeof(T);
  if (!packed) return {columns, 0};
  const int begun = static_cast<int>(reinterpret_cast<uintptr_t>(row) % 16 / sizeof(T));
  const int missing = (kWidth - begun) % kWidth, head = missing < columns ? missing : columns;
  return {head, (columns - head) / kWidth};
}

// Calls visit(first element, values as f32) for the elements outside packs, numbered from 0.
template <int kThreads, typename T, typename F>
__device__ __forceinline__ void ForEnds(const T* row, int columns, const Parts& parts, F&& visit) {
  const int skipped = parts.packs * static_cast<int>(16 / sizeof(T));
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < columns - skipped; i += kThreads) {
    const int column = i < parts.head ? i : i + skipped;
    float values[1] = {ToFloat(row[column])};
    visit(column, values);
  }
}

// The same for this thread's part of the whole row. Packs are read kTogether at a time, so that enough bytes
// are on their way; kBackwards: the last ones first.
template <int kThreads, bool kBackwards, typename T, typename F>
__device__ __forceinline__ void ForRow(const T* row, int columns, const Parts& parts, F&& visit) {
  constexpr int kWidth = 16 / sizeof(T), kTogether = 4, kAtOnce = kTogether * kThreads;
  if constexpr (kBackwards) ForEnds<kThreads>(row, columns, parts, visit);
  const T* body = row + parts.head;
  const int rounds = (parts.packs + kAtOnce - 1) / kAtOnce;
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    const int first = (kBackwards ? rounds - 1 - round : round) * kAtOnce + static_cast<int>(threadIdx.x);
    Pack<T> packs[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const int p = first + i * kThreads;
      if (p < parts.packs) packs[i] = LoadPack(body + int64_t{p} * kWidth);
    }
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const int p = first + i * kThreads;
      if (p >= parts.packs) break;
      float values[kWidth];
#pragma unroll
      for (int e = 0; e < kWidth; ++e) values[e] = ToFloat(packs[i].at[e]);
      visit(parts.head + p * kWidth, values);
    }
  }
  if constexpr (!kBackwards) ForEnds<kThreads>(row, columns, parts, visit);
}

// Maximum, and sum of exponentials relative to it, in one pass. The maximum begins with a number, so that a
// logit of minus infinity counts for nothing.
struct OnlineSum {
  float maximum = kLowest, sum = 0.0f;

  template <int kCount>
  __device__ __forceinline__ void Add(const float (&x)[kCount]) {
    float highest = maximum;
#pragma unroll
    for (int i = 0; i < kCount; ++i) highest = Max()(highest, x[i]);
    if (highest > maximum) {
      sum *= expf(maximum - highest);
      maximum = highest;
    }
    float part = 0.0f;
#pragma unroll
    for (int i = 0; i < kCount; ++i) part += expf(x[i] - maximum);
    sum += part;
  }
};

// One block for a row.
template <typename T, int kThreads, bool kGradient>
__global__ void __launch_bounds__(kThreads, 1024 / kThreads) RowLossKernel(RowLossArgs args, bool packed) {
  const int64_t offset = int64_t{blockIdx.x} * args.stride;
  const T* row = static_cast<const T*>(args.logits) + offset;
  T* gradient = static_cast<T*>(args.gradient) + (kGradient ? offset : 0);
  const int columns = args.columns, target = args.targets[blockIdx.x];
  const bool first = threadIdx.x == 0;
  if (target < 0) {  // the whole block
    if (first && args.losses != nullptr) args.losses[blockIdx.x] = 0.0f;
    for (int i = static_cast<int>(threadIdx.x); kGradient && i < columns; i += kThreads)
      gradient[i] = FromFloat<T>(0.0f);
    return;
  }
  const float at_target = target < columns ? ToFloat(row[target]) : NAN;
  const Parts parts = PartsOf(row, columns, packed);
  OnlineSum own;
  ForRow<kThreads, false>(row, columns, parts, [&](int, const auto& values) { own.Add(values); });
  const float maximum = BlockReduce<Max, kThreads>(own.maximum);
  const float sum = BlockReduce<Sum, kThreads>(own.sum * expf(own.maximum - maximum));
  if (first && args.losses != nullptr) args.losses[blockIdx.x] = maximum - at_target + logf(sum);
  if constexpr (kGradient) {
    const float scale = args.scale->rows, factor = scale / sum;
    // Backwards: what was read last is still in the cache, also of a row that is not there as a whole.
    ForRow<kThreads, true>(row, columns, parts, [&]<int kCount>(int column, const float (&values)[kCount]) {
      Pack<T, kCount> pack;
#pragma unroll
      for (int e = 0; e < kCount; ++e) pack.at[e] = FromFloat<T>(expf(values[e] - maximum) * factor);
      *reinterpret_cast<Pack<T, kCount>*>(gradient + column) = pack;
    });
    __syncthreads();
    if (first && target < columns)
      gradient[target] = FromFloat<T>(__fmaf_rn(expf(at_target - maximum), factor, -scale));
  }
}

template <typename T, int kThreads>
int LaunchRows(const RowLossArgs& args, StreamHandle stream) {
  const LaunchShape shape = {.grid_x = static_cast<unsigned>(args.rows), .block_x = kThreads};
  if (args.gradient == nullptr) return Launch(RowLossKernel<T, kThreads, false>, shape, stream, args, true);
  // Packs of the gradient begin where those of the logits do.
  const uintptr_t logits = reinterpret_cast<uintptr_t>(args.logits),
                  gradient = reinterpret_cast<uintptr_t>(args.gradient);
  return Launch(RowLossKernel<T, kThreads, true>, shape, stream, args, (logits - gradient) % 16 == 0);
}

constexpr int kFinishThreads = 256;

template <typename T>
__device__ __forceinline__ float Finished(const FinishGradientArgs& args, float rest, float sum, T before) {
  return __fmaf_rn(rest, sum, args.accumulate ? ToFloat(before) : 0.0f);
}

template <typename T>
__global__ void __launch_bounds__(kFinishThreads) FinishGradientKernel(FinishGradientArgs args, bool packed) {
  constexpr int kWidth = 4;
  const float rest = args.scale->rest;
  T* result = static_cast<T*>(args.result);
  const int64_t begin = (int64_t{blockIdx.x} * kFinishThreads + threadIdx.x) * kWidth;
  if (packed && begin + kWidth <= args.elements) {
    const Pack<float> sums = LoadPack(args.sums + begin);
    Pack<T, kWidth> pack = {};
    if (args.accumulate) pack = *reinterpret_cast<const Pack<T, kWidth>*>(result + begin);
#pragma unroll
    for (int e = 0; e < kWidth; ++e) pack.at[e] = FromFloat<T>(Finished(args, rest, sums.at[e], pack.at[e]));
    *reinterpret_cast<Pack<T, kWidth>*>(result + begin) = pack;
    return;
  }
  for (int64_t i = begin; i < begin + kWidth && i < args.elements; ++i) {
    const T before = args.accumulate ? result[i] : T{};
    result[i] = FromFloat<T>(Finished(args, rest, args.sums[i], before));
  }
}

}  // namespace

int FindLossScale(const LossScaleArgs& args, StreamHandle stream) {
  return Launch(LossScaleKernel, {.block_x = kOneBlock}, stream, args);
}

int RowLosses(const RowLossArgs& args, StreamHandle stream) {
  // A short row does not feed 512 threads. Of long ones no more are under way at once than the second-level
  // cache keeps until their gradients are made: one on each multiprocessor, rather than two.
  constexpr size_t kLongBytes = 128 << 10;
  return WithFloatType(args.dtype, [&]<typename T>() {
    if (args.columns < 4096) return LaunchRows<T, 128>(args, stream);
    return args.columns * sizeof(T) < kLongBytes ? LaunchRows<T, 512>(args, stream)
                                                 : LaunchRows<T, 1024>(args, stream);
  });
}

int MeanLoss(const float* losses, int rows, const LossScale* scale, float* result, StreamHandle stream) {
  return Launch(MeanLossKernel, {.block_x = kOneBlock}, stream, losses, rows, scale, result);
}

int FinishGradient(const FinishGradientArgs& args, StreamHandle stream) {
  constexpr int64_t kElements = kFinishThreads * 4;
  const unsigned blocks = static_cast<unsigned>((args.elements + kElements - 1) / kElements);
  return WithFloatType(args.dtype, [&]<typename T>() {
    const bool packed = reinterpret_cast<uintptr_t>(args.result) % sizeof(Pack<T, 4>) == 0;
    return Launch(FinishGradientKernel<T>, {.grid_x = blocks, .block_x = kFinishThreads}, stream, args,
                  packed);
  });
}

}  // namespace ft::cuda
