// With h = (x - mean) * scale and g = dy * weight, layer norm has dx = scale * (g - mean(g) - h * mean(g h)),
// dweight = the sum over rows of dy h, dbias = that of dy. RMS norm has a mean of 0 and no mean(g).
#include <algorithm>

#include "runtime/backends/cuda/routines/column_sums.h"
#include "runtime/backends/cuda/routines/gpu.h"
#include "runtime/backends/cuda/routines/hold_packed.h"
#include "runtime/backends/cuda/routines/norm.h"
#include "runtime/backends/cuda/routines/row_group.h"
#include "runtime/backends/cuda/routines/store.h"

namespace ft::cuda {
namespace {

constexpr int kGradMostThreads = 512;

// A block takes a block of rows, one row at a time, a thread a pack of it, and keeps the sums of its columns
// in registers. The next row is on its way while one is worked on.
template <typename T, bool kLayer>
__global__ __launch_bounds__(kGradMostThreads, 2) void NormGradRows(NormGradArgs args) {
  constexpr int kWidth = 16 / sizeof(T);
  __shared__ GroupPartials partials[3];
  const int column = static_cast<int>(threadIdx.x) * kWidth;
  const bool inside = column < args.columns;  // the other threads have zeros, which only sums of squares see
  const float n = static_cast<float>(args.columns);
  const int64_t block = blockIdx.x;
  const int64_t begin = args.rows * block / args.blocks, end = args.rows * (block + 1) / args.blocks;
  float dweight[kWidth] = {}, dbias[kWidth] = {};
  Pack<T> next_x = {}, next_dy = {};
  const auto load = [&](int64_t row) {
    next_x = LoadPack(static_cast<const T*>(args.x) + row * args.columns + column);
    next_dy = LoadPack(static_cast<const T*>(args.dy) + row * args.columns + column);
  };
  if (inside) load(begin);
  for (int64_t row = begin; row < end; ++row) {
    Pack<T> x = next_x, dy = next_dy;
    HoldPacked(x);
    HoldPacked(dy);
    if (inside && row + 1 < end) load(row + 1);
    float mean = 0.0f;
    if constexpr (kLayer) {
      float sum = 0.0f;
#pragma unroll
      for (int j = 0; j < kWidth; ++j) sum += ToFloat(x.at[j]);
      mean = GroupSum<false>(sum, partials[0]) / n;
    }
    float squares = 0.0f;
#pragma unroll
    for (int j = 0; j < kWidth; ++j)
      squares = fmaf(ToFloat(x.at[j]) - mean, ToFloat(x.at[j]) - mean, squares);
    const float scale = 1.0f / sqrtf(GroupSum<false>(inside ? squares : 0.0f, partials[1]) / n + args.eps);
    // The weight is read where it is needed, from the cache: registers are short.
    Pack<T> weight = {};
    if (inside) weight = LoadPack(static_cast<const T*>(args.weight) + column);
    float sum_g = 0.0f, sum_gh = 0.0f;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      const float h = (ToFloat(x.at[j]) - mean) * scale;
      const float g = ToFloat(dy.at[j]) * ToFloat(weight.at[j]);
      sum_g += g;
      sum_gh = fmaf(g, h, sum_gh);
      dweight[j] = fmaf(ToFloat(dy.at[j]), h, dweight[j]);
      dbias[j] += ToFloat(dy.at[j]);
    }
    GroupSums<false>(sum_g, sum_gh, partials[2]);
    const float mean_g = kLayer ? sum_g / n : 0.0f, mean_gh = sum_gh / n;
    if (!inside) continue;
    weight = LoadPack(static_cast<const T*>(args.weight) + column);
    Pack<T> dx;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      const float h = (ToFloat(x.at[j]) - mean) * scale;
      const float g = ToFloat(dy.at[j]) * ToFloat(weight.at[j]);
      dx.at[j] = FromFloat<T>(scale * (g - mean_g - h * mean_gh));
    }
    StorePack(static_cast<T*>(args.dx) + row * args.columns + column, dx);
  }
  if (!inside) return;
  float* partial = args.partials + block * (kLayer ? 2 : 1) * args.columns + column;
  StoreRun(partial, dweight, false);
  if constexpr (kLayer) StoreRun(partial + args.columns, dbias, false);
}

// Where a thread's sums of columns are in a block's memory: column j of pack i at first[i * pack + j / 4 *
// quad + j % 4], those for dbias behind those for dweight. In shared memory neighbouring threads have
// neighbouring quads; partial sums are plain rows.
struct Places {
  float* first;
  int pack, quad;
};

// The sums of columns with one row more, for one pack.
template <int kWidth>
__device__ __forceinline__ void AddTo(const Places& places, int i, const float (&terms)[kWidth],
                                      bool begins) {
  constexpr int kQuad = kWidth < 4 ? kWidth : 4;
#pragma unroll
  for (int j = 0; j < kWidth; j += kQuad) {
    float* at = places.first + i * places.pack + j / kQuad * places.quad;
    Pack<float, kQuad> sums = {};
    if (!begins) sums = LoadSome<float, kQuad>(at);
#pragma unroll
    for (int q = 0; q < kQuad; ++q) sums.at[q] += terms[j + q];
    StoreSome<float, kQuad>(at, sums);
  }
}

// Rows of any width: read again for each sum, but from the cache. The sums of columns are in shared memory
// where they fit, else in the partial sums themselves.
template <typename T, int kWidth, bool kLayer>
__global__ __launch_bounds__(kGradMostThreads, 2) void NormGradWideRows(NormGradArgs args, bool shared) {
  __shared__ GroupPartials partials[3];
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int packs = args.columns / kWidth;
  const float n = static_cast<float>(args.columns);
  const int64_t block = blockIdx.x;
  const int64_t begin = args.rows * block / args.blocks, end = args.rows * (block + 1) / args.blocks;
  float* partial = args.partials + block * (kLayer ? 2 : 1) * args.columns;
  const int quad = kWidth < 4 ? kWidth : 4;
  const Places dweight =
      shared ? Places{DynamicShared<float>(), quad, quad * packs} : Places{partial, kWidth, quad};
  const Places dbias = {dweight.first + args.columns, dweight.pack, dweight.quad};
  for (int64_t row = begin; row < end; ++row) {
    const T* x = static_cast<const T*>(args.x) + row * args.columns;
    const T* dy = static_cast<const T*>(args.dy) + row * args.columns;
    float mean = 0.0f;
    if constexpr (kLayer) {
      float sum = 0.0f;
#pragma unroll 2
      for (int i = thread; i < packs; i += threads) {
        const Pack<T, kWidth> own = LoadSome<T, kWidth>(x + i * kWidth);
#pragma unroll
        for (int j = 0; j < kWidth; ++j) sum += ToFloat(own.at[j]);
      }
      mean = GroupSum<false>(sum, partials[0]) / n;
    }
    float squares = 0.0f;
#pragma unroll 2
    for (int i = thread; i < packs; i += threads) {
      const Pack<T, kWidth> own = LoadSome<T, kWidth>(x + i * kWidth);
#pragma unroll
      for (int j = 0; j < kWidth; ++j) {
        squares = fmaf(ToFloat(own.at[j]) - mean, ToFloat(own.at[j]) - mean, squares);
      }
    }
    const float scale = 1.0f / sqrtf(GroupSum<false>(squares, partials[1]) / n + args.eps);
    float sum_g = 0.0f, sum_gh = 0.0f;
    for (int i = thread; i < packs; i += threads) {
      const Pack<T, kWidth> own_x = LoadSome<T, kWidth>(x + i * kWidth);
      const Pack<T, kWidth> own_dy = LoadSome<T, kWidth>(dy + i * kWidth);
      const Pack<T, kWidth> weight = LoadSome<T, kWidth>(static_cast<const T*>(args.weight) + i * kWidth);
      float weight_terms[kWidth], bias_terms[kWidth];
#pragma unroll
      for (int j = 0; j < kWidth; ++j) {
        const float h = (ToFloat(own_x.at[j]) - mean) * scale;
        const float g = ToFloat(own_dy.at[j]) * ToFloat(weight.at[j]);
        sum_g += g;
        sum_gh = fmaf(g, h, sum_gh);
        bias_terms[j] = ToFloat(own_dy.at[j]);
        weight_terms[j] = bias_terms[j] * h;
      }
      AddTo<kWidth>(dweight, i, weight_terms, row == begin);
      if constexpr (kLayer) AddTo<kWidth>(dbias, i, bias_terms, row == begin);
    }
    GroupSums<false>(sum_g, sum_gh, partials[2]);
    const float mean_g = kLayer ? sum_g / n : 0.0f, mean_gh = sum_gh / n;
#pragma unroll 2
    for (int i = thread; i < packs; i += threads) {
      const Pack<T, kWidth> own_x = LoadSome<T, kWidth>(x + i * kWidth);
      const Pack<T, kWidth> own_dy = LoadSome<T, kWidth>(dy + i * kWidth);
      const Pack<T, kWidth> weight = LoadSome<T, kWidth>(static_cast<const T*>(args.weight) + i * kWidth);
      Pack<T, kWidth> dx;
#pragma unroll
      for (int j = 0; j < kWidth; ++j) {
        const float h = (ToFloat(own_x.at[j]) - mean) * scale;
        const float g = ToFloat(own_dy.at[j]) * ToFloat(weight.at[j]);
        dx.at[j] = FromFloat<T>(scale * (g - mean_g - h * mean_gh));
      }
      StoreSome<T, kWidth>(static_cast<T*>(args.dx) + row * args.columns + i * kWidth, dx);
    }
  }
  if (!shared) return;
  // Every thread writes its own sums.
  for (int i = thread; i < packs; i += threads) {
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      const int place = i * dweight.pack + j / quad * dweight.quad + j % quad;
      partial[i * kWidth + j] = dweight.first[place];
      if constexpr (kLayer) partial[args.columns + i * kWidth + j] = dbias.first[place];
    }
  }
}

// Threads for rows of this many packs.
unsigned ThreadsFor(int packs) {
  return static_cast<unsigned>(std::min((packs + kWarp - 1) / kWarp * kWarp, kGradMostThreads));
}

template <typename T, int kWidth, bool kLayer>
int LaunchWide(const NormGradArgs& args, StreamHandle stream) {
  const size_t bytes = static_cast<size_t>(args.columns) * sizeof(float) * (kLayer ? 2 : 1);
  const bool shared = bytes + 3 * sizeof(GroupPartials) <= args.shared_bytes;
  LaunchShape shape;
  shape.grid_x = static_cast<unsigned>(args.blocks);
  shape.block_x = ThreadsFor(args.columns / kWidth);
  shape.shared_bytes = shared ? bytes : 0;
  return Launch(&NormGradWideRows<T, kWidth, kLayer>, shape, stream, args, shared);
}

template <typename T, bool kLayer>
int GradLaunchRows(const NormGradArgs& args, StreamHandle stream) {
  constexpr int kWidth = 16 / sizeof(T);
  const bool packed = CanPack<T>(args.x, args.columns) && CanPack<T>(args.dy, args.columns) &&
                      CanPack<T>(args.dx, args.columns) && CanPack<T>(args.weight, 0);
  if (!packed) return LaunchWide<T, 1, kLayer>(args, stream);
  if (args.columns / kWidth > kGradMostThreads) return LaunchWide<T, kWidth, kLayer>(args, stream);
  LaunchShape shape;
  shape.grid_x = static_cast<unsigned>(args.blocks);
  shape.block_x = ThreadsFor(args.columns / kWidth);
  return Launch(&NormGradRows<T, kLayer>, shape, stream, args);
}

}  // namespace

int NormGrad(const NormGradArgs& args, StreamHandle stream) {
  const bool layer = args.dbias != nullptr;
  if (args.rows > 0) {
    const int error = WithFloatType(args.dtype, [&]<typename T>() {
      return layer ? GradLaunchRows<T, true>(args, stream) : GradLaunchRows<T, false>(args, stream);
    });
    if (error != 0) return error;
  }
  return AddPartials({args.partials,
                      args.rows > 0 ? args.blocks : 0,
                      args.columns,
                      {args.dweight, args.dbias},
                      {args.dweight_dtype, args.dbias_dtype},
                      layer ? 2 : 1},
                     stream);
}

}  // namespace ft::cuda
