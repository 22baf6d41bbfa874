#include "runtime/backends/cuda/routines/column_sums.h"
#include "runtime/backends/cuda/routines/element.h"
#include "runtime/backends/cuda/routines/gpu.h"
#include "runtime/backends/cuda/routines/store.h"

namespace ft::cuda {
namespace {

constexpr int kRowLanes = 8;  // warps of a block, each with rows of its own
constexpr int kAhead = 4;     // rows that a warp reads at a time

// A block sums columns 32 * kWidth * blockIdx.x ... of its block of rows, blockIdx.y: warp w takes rows w,
// w + 8, ..., and the warps' sums are added in order.
template <typename T, int kWidth>
__global__ __launch_bounds__(kWarp* kRowLanes, 4) void SumRows(SumLeadingArgs args) {
  __shared__ float sums[kRowLanes][kWarp * kWidth];
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kWarp + lane) * kWidth;
  const int64_t block = blockIdx.y;
  const int64_t begin = args.rows * block / args.blocks, end = args.rows * (block + 1) / args.blocks;
  float sum[kWidth] = {};
  if (first < args.columns) {
    const T* x = static_cast<const T*>(args.x) + first;
    int64_t row = begin + warp;
    for (; row + (kAhead - 1) * kRowLanes < end; row += kAhead * kRowLanes) {
      Pack<T, kWidth> packs[kAhead];
#pragma unroll
      for (int k = 0; k < kAhead; ++k)
        packs[k] = LoadSome<T, kWidth>(x + (row + k * kRowLanes) * args.columns);
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
#pragma unroll
        for (int j = 0; j < kWidth; ++j) sum[j] += ToFloat(packs[k].at[j]);
      }
    }
    for (; row < end; row += kRowLanes) {
      const Pack<T, kWidth> pack = LoadSome<T, kWidth>(x + row * args.columns);
#pragma unroll
      for (int j = 0; j < kWidth; ++j) sum[j] += ToFloat(pack.at[j]);
    }
  }
#pragma unroll
  for (int j = 0; j < kWidth; ++j) sums[warp][j * kWarp + lane] = sum[j];  // no two lanes in one bank
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kWarp * kWidth; i += kWarp * kRowLanes) {
    const int64_t column = (static_cast<int64_t>(blockIdx.x) * kWarp + i / kWidth) * kWidth + i % kWidth;
    if (column >= args.columns) continue;
    float total = 0.0f;
#pragma unroll
    for (int w = 0; w < kRowLanes; ++w) total += sums[w][i % kWidth * kWarp + i / kWidth];
    if (args.blocks == 1) {
      StoreAs(args.result, args.result_dtype, column, total);
    } else {
      args.partials[block * args.columns + column] = total;
    }
  }
}

template <typename T, int kWidth>
int LaunchSumRows(const SumLeadingArgs& args, StreamHandle stream) {
  constexpr int64_t kColumns = kWarp * kWidth;
  LaunchShape shape;
  shape.grid_x = static_cast<unsigned>((args.columns + kColumns - 1) / kColumns);
  shape.grid_y = static_cast<unsigned>(args.blocks);
  shape.block_x = kWarp * kRowLanes;
  return Launch(&SumRows<T, kWidth>, shape, stream, args);
}

constexpr int kPartialLanes = 32;

// 32 columns of result blockIdx.y: warp w adds the partials of blocks w, w + 32, ...
__global__ __launch_bounds__(kWarp* kPartialLanes) void SumPartials(AddPartialsArgs args) {
  __shared__ float sums[kPartialLanes][kWarp];
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kWarp + lane, result = blockIdx.y;
  float sum = 0.0f;
  if (column < args.columns) {
    const int64_t stride = args.results * args.columns;
    const float* partials = args.partials + result * args.columns + column;
#pragma unroll 8
    for (int64_t block = warp; block < args.blocks; block += kPartialLanes) sum += partials[block * stride];
  }
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= args.columns) return;
  float total = 0.0f;
#pragma unroll
  for (int w = 0; w < kPartialLanes; ++w) total += sums[w][lane];
  // Chosen, not indexed: an index would put the arguments into local memory.
  if (result == 0) {
    StoreAs(args.result[0], args.dtype[0], column, total);
  } else {
    StoreAs(args.result[1], args.dtype[1], column, total);
  }
}

}  // namespace

int AddPartials(const AddPartialsArgs& args, StreamHandle stream) {
  LaunchShape shape;
  shape.grid_x = static_cast<unsigned>((args.columns + kWarp - 1) / kWarp);
  shape.grid_y = static_cast<unsigned>(args.results);
  shape.block_x = kWarp * kPartialLanes;
  return Launch(&SumPartials, shape, stream, args);
}

int SumLeading(const SumLeadingArgs& args, StreamHandle stream) {
  const int error = WithFloatType(args.dtype, [&]<typename T>() {
    return CanPack<T>(args.x, args.columns) ? LaunchSumRows<T, 16 / sizeof(T)>(args, stream)
                                            : LaunchSumRows<T, 1>(args, stream);
  });
  if (error != 0 || args.blocks == 1) return error;
  return AddPartials(
      {args.partials, args.blocks, args.columns, {args.result, nullptr}, {args.result_dtype, DType::kF32}, 1},
      stream);
}

}  // namespace ft::cuda
