#include "runtime/backends/cuda/routines/gpu.h"
#include "runtime/backends/cuda/routines/norm.h"
#include "runtime/backends/cuda/routines/row_group.h"
#include "runtime/backends/cuda/routines/store.h"

namespace ft::cuda {
namespace {

constexpr int kWarpsPerBlock = 8;
constexpr int kMostThreads = 1024;

// A row is read once and stays in the registers of a warp or of the block: thread t holds packs t, t +
// threads,
// ... of kWidth elements, at most kPacks. The variance is that of x - mean: nothing cancels.
template <typename T, int kWidth, int kPacks, bool kWarpRows, bool kLayer>
__global__ __launch_bounds__(kWarpRows ? kWarp* kWarpsPerBlock : kMostThreads,
                             kWarpRows ? 4 : 1) void NormRows(NormArgs args) {
  __shared__ GroupPartials partials[2];
  const int threads = kWarpRows ? kWarp : static_cast<int>(blockDim.x);
  const int thread = static_cast<int>(threadIdx.x) % threads;
  const int64_t row = kWarpRows ? static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / kWarp
                                : static_cast<int64_t>(blockIdx.x);
  if (row >= args.rows) return;  // a whole warp; blocks are as many as rows
  const int packs = args.columns / kWidth;
  const float n = static_cast<float>(args.columns);
  const T* x = static_cast<const T*>(args.x) + row * args.columns;
  Pack<T, kWidth> own[kPacks];
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const int i = thread + k * threads;
    if (i < packs) own[k] = LoadSome<T, kWidth>(x + i * kWidth);
  }
  float mean = 0.0f;
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
  T* result = static_cast<T*>(args.result) + row * args.columns;
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

// Rows that do not fit in registers are read three times. One block for a row.
template <typename T, bool kLayer>
__global__ __launch_bounds__(kMostThreads) void NormWideRows(NormArgs args) {
  const int thread = static_cast<int>(threadIdx.x);
  const float n = static_cast<float>(args.columns);
  const T* x = static_cast<const T*>(args.x) + static_cast<int64_t>(blockIdx.x) * args.columns;
  T* result = static_cast<T*>(args.result) + static_cast<int64_t>(blockIdx.x) * args.columns;
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

template <typename T, int kWidth, int kPacks, bool kWarpRows, bool kLayer>
int LaunchNormRows(const NormArgs& args, StreamHandle stream) {
  LaunchShape shape;
  if (kWarpRows) {
    shape.grid_x = static_cast<unsigned>((args.rows + kWarpsPerBlock - 1) / kWarpsPerBlock);
    shape.block_x = kWarp * kWarpsPerBlock;
  } else {
    const int wanted = (args.columns / kWidth + kPacks - 1) / kPacks;
    shape.grid_x = static_cast<unsigned>(args.rows);
    shape.block_x = static_cast<unsigned>((wanted + kWarp - 1) / kWarp * kWarp);
  }
  return Launch(&NormRows<T, kWidth, kPacks, kWarpRows, kLayer>, shape, stream, args);
}

template <typename T, bool kLayer>
int LaunchNorm(const NormArgs& args, StreamHandle stream) {
  constexpr int kWidth = 16 / sizeof(T);
  const bool packed = CanPack<T>(args.x, args.columns) && CanPack<T>(args.weight, 0) &&
                      CanPack<T>(args.bias, 0) && CanPack<T>(args.result, args.columns);
  const int packs = packed ? args.columns / kWidth : args.columns;
  if (packed && packs <= 4 * kWarp) return LaunchNormRows<T, kWidth, 4, true, kLayer>(args, stream);
  if (packed && packs <= 4 * kMostThreads) return LaunchNormRows<T, kWidth, 4, false, kLayer>(args, stream);
  if (!packed && packs <= 8 * kWarp) return LaunchNormRows<T, 1, 8, true, kLayer>(args, stream);
  if (!packed && packs <= 8 * kMostThreads) return LaunchNormRows<T, 1, 8, false, kLayer>(args, stream);
  LaunchShape shape;
  shape.grid_x = static_cast<unsigned>(args.rows);
  shape.block_x = kMostThreads;
  return Launch(&NormWideRows<T, kLayer>, shape, stream, args);
}

}  // namespace

int Norm(const NormArgs& args, StreamHandle stream) {
  if (args.rows == 0) return 0;
  return WithFloatType(args.dtype, [&]<typename T>() {
    return args.bias != nullptr ? LaunchNorm<T, true>(args, stream) : LaunchNorm<T, false>(args, stream);
  });
}

}  // namespace ft::cuda
