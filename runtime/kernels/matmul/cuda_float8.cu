#include "runtime/backends/cuda/device_code/element.h"
#include "runtime/backends/cuda/device_code/float8.h"
#include "runtime/backends/cuda/device_code/reduce.h"
#include "runtime/base/cuda_workspace.h"
#include "runtime/kernels/matmul/cuda_float8.h"

namespace ft::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int kBlock = static_cast<int>(kFloat8Block);
constexpr int kPack = 8;                  // elements of 16 bytes
constexpr int kOfLane = kBlock / kWarp;   // elements of a row
constexpr int kOfWarp = kBlock / kWarps;  // elements of a column
constexpr int kMostBlocks = 2048;
static_assert(cuda_workspace::kFloat8Greatest == kThreads);

// Of bits of f32 without their sign.
struct MaxBits {
  __device__ __forceinline__ uint32_t operator()(uint32_t a, uint32_t b) const { return a < b ? b : a; }
  template <typename T>
  __device__ __forceinline__ static T Neutral() {
    return T(0);
  }
};

// As bits of an f32; 0 for what is not finite.
__device__ __forceinline__ uint32_t Magnitude(BF16 x) {
  const uint32_t bits = static_cast<uint32_t>(x.bits & 0x7FFF) << 16;
  return bits < kFloat8Infinity ? bits : 0;
}

__device__ __forceinline__ uint32_t GreatestOf(const Pack<BF16>& pack) {
  uint32_t greatest = 0;
#pragma unroll
  for (int i = 0; i < kPack; ++i) greatest = MaxBits()(greatest, Magnitude(pack.at[i]));
  return greatest;
}

// Of all elements, a part of the answer from each block.
__global__ __launch_bounds__(kThreads) void GreatestOfAll(Float8Rounding r) {
  const auto* x = static_cast<const BF16*>(r.x);
  const int64_t packs = r.rows * r.columns / kPack;
  uint32_t greatest = 0;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < packs;
       i += static_cast<int64_t>(gridDim.x) * kThreads)
    greatest = MaxBits()(greatest, GreatestOf(LoadPack(x + i * kPack)));
  greatest = BlockReduce<MaxBits, kThreads>(greatest);
  if (threadIdx.x == 0) r.greatest[blockIdx.x] = greatest;
}

// A block of threads for each square of the stored matrix.
__global__ __launch_bounds__(kThreads) void GreatestOfSquares(Float8Rounding r) {
  const auto* x = static_cast<const BF16*>(r.x);
  constexpr int kPacks = kBlock / kPack, kRowsAtOnce = kThreads / kPacks;
  const int64_t column =
      static_cast<int64_t>(blockIdx.x) * kBlock + static_cast<int>(threadIdx.x) % kPacks * kPack;
  const int64_t first = static_cast<int64_t>(blockIdx.y) * kBlock + static_cast<int>(threadIdx.x) / kPacks;
  uint32_t greatest = 0;
  for (int i = 0; i < kBlock && column < r.columns; i += kRowsAtOnce)
    if (first + i < r.rows)
      greatest = MaxBits()(greatest, GreatestOf(LoadPack(x + (first + i) * r.columns + column)));
  greatest = BlockReduce<MaxBits, kThreads>(greatest);
  if (threadIdx.x == 0) r.greatest[blockIdx.y * gridDim.x + blockIdx.x] = greatest;
}

// Of the whole operand, from the parts of GreatestOfAll.
__device__ __forceinline__ uint32_t GreatestOfParts(const Float8Rounding& r) {
  return BlockReduce<MaxBits, kThreads>(r.greatest[threadIdx.x]);
}

__device__ __forceinline__ void StoreScale(const Float8Rounding& r, int64_t along_k, int64_t along_rows,
                                           float inverse) {
  r.scales[along_k * r.strides.along_k + along_rows * r.strides.along_rows] = inverse;
}

// Sums are over columns: a warp for each block of a row.
template <Float8 kType, ScaleOf kScale>
__global__ __launch_bounds__(kThreads) void RoundRows(Float8Rounding r) {
  const auto* x = static_cast<const BF16*>(r.x);
  auto* out = static_cast<uint8_t*>(r.out);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t blocks = r.padded / kBlock;
  uint32_t of_all = 0;
  if constexpr (kScale == ScaleOf::kTensor) of_all = GreatestOfParts(r);
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp; item < r.rows * blocks;
       item += static_cast<int64_t>(gridDim.x) * kWarps) {
    const int64_t row = item / blocks, block = item % blocks, k = block * kBlock + lane * kOfLane;
    Pack<BF16, kOfLane> values = {};
    if (k < r.columns) values = *reinterpret_cast<const Pack<BF16, kOfLane>*>(x + row * r.columns + k);
    uint32_t greatest = of_all;
    if constexpr (kScale == ScaleOf::kVectors) {
#pragma unroll
      for (int i = 0; i < kOfLane; ++i) greatest = MaxBits()(greatest, Magnitude(values.at[i]));
      greatest = WarpReduce<MaxBits>(greatest);
    } else if constexpr (kScale == ScaleOf::kSquares) {
      greatest = r.greatest[row / kBlock * blocks + block];
    }
    const ScalePair pair = ScaleFor<kType>(greatest);
    uint32_t bytes = 0;
#pragma unroll
    for (int i = 0; i < kOfLane; i += 2)
      bytes |= RoundPair<kType>(__fmul_rn(ToFloat(values.at[i]), pair.scale),
                                __fmul_rn(ToFloat(values.at[i + 1]), pair.scale))
               << (8 * i);
    *reinterpret_cast<uint32_t*>(out + row * r.padded + k) = bytes;
    if (lane != 0) continue;
    if constexpr (kScale == ScaleOf::kVectors) StoreScale(r, block, row, pair.inverse);
    if constexpr (kScale == ScaleOf::kSquares)
      if (row % kBlock == 0) StoreScale(r, block, row / kBlock, pair.inverse);
    if constexpr (kScale == ScaleOf::kTensor)
      if (item == 0) r.scales[0] = pair.inverse;
  }
}

// Sums are over rows: a block of threads for 128 rows and as many columns as a warp has lanes, of which each
// warp has some rows.
template <Float8 kType, ScaleOf kScale>
__global__ __launch_bounds__(kThreads) void RoundColumns(Float8Rounding r) {
  const auto* x = static_cast<const BF16*>(r.x);
  auto* out = static_cast<uint8_t*>(r.out);
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kWarp + lane, block = blockIdx.y;
  const int64_t k = block * kBlock + warp * kOfWarp;
  const bool is_there = column < r.columns;
  BF16 values[kOfWarp];
  uint32_t greatest = 0;
#pragma unroll
  for (int i = 0; i < kOfWarp; ++i) {
    values[i] = is_there && k + i < r.rows ? x[(k + i) * r.columns + column] : BF16{0};
    greatest = MaxBits()(greatest, Magnitude(values[i]));
  }
  if constexpr (kScale == ScaleOf::kTensor) {
    greatest = GreatestOfParts(r);
  } else if constexpr (kScale == ScaleOf::kSquares) {
    greatest = is_there ? r.greatest[block * ((r.columns + kBlock - 1) / kBlock) + column / kBlock] : 0;
  } else {
    __shared__ uint32_t of_warps[kWarps][kWarp];
    of_warps[warp][lane] = greatest;
    __syncthreads();
    for (int i = 0; i < kWarps; ++i) greatest = MaxBits()(greatest, of_warps[i][lane]);
  }
  if (!is_there) return;
  const ScalePair pair = ScaleFor<kType>(greatest);
  Pack<uint32_t> bytes = {};
#pragma unroll
  for (int i = 0; i < kOfWarp; i += 2)
    bytes.at[i / 4] |= RoundPair<kType>(__fmul_rn(ToFloat(values[i]), pair.scale),
                                        __fmul_rn(ToFloat(values[i + 1]), pair.scale))
                       << (8 * (i % 4));
  StorePack(reinterpret_cast<uint32_t*>(out + column * r.padded + k), bytes);
  if (warp != 0) return;
  if constexpr (kScale == ScaleOf::kVectors) StoreScale(r, block, column, pair.inverse);
  if constexpr (kScale == ScaleOf::kSquares)
    if (column % kBlock == 0) StoreScale(r, block, column / kBlock, pair.inverse);
  if constexpr (kScale == ScaleOf::kTensor)
    if (column == 0 && block == 0) r.scales[0] = pair.inverse;
}

unsigned Ceil(int64_t a, int64_t b) { return static_cast<unsigned>((a + b - 1) / b); }

template <Float8 kType, ScaleOf kScale>
int Round(const Float8Rounding& r, StreamHandle stream) {
  LaunchShape shape;
  shape.block_x = kThreads;
  const int64_t blocks = r.padded / kBlock;
  if (r.transpose) {
    shape.grid_x = Ceil(r.columns, kWarp);
    shape.grid_y = static_cast<unsigned>(blocks);
    return Launch(&RoundColumns<kType, kScale>, shape, stream, r);
  }
  const unsigned items = Ceil(r.rows * blocks, kWarps);
  shape.grid_x = items < kMostBlocks ? items : kMostBlocks;
  return Launch(&RoundRows<kType, kScale>, shape, stream, r);
}

template <Float8 kType>
int RoundTo(const Float8Rounding& r, StreamHandle stream) {
  LaunchShape shape;
  shape.block_x = kThreads;
  if (r.scale == ScaleOf::kVectors) return Round<kType, ScaleOf::kVectors>(r, stream);
  if (r.scale == ScaleOf::kTensor) {
    shape.grid_x = kThreads;  // as many parts as GreatestOfParts reads
    if (const int error = Launch(&GreatestOfAll, shape, stream, r)) return error;
    return Round<kType, ScaleOf::kTensor>(r, stream);
  }
  shape.grid_x = Ceil(r.columns, kBlock);
  shape.grid_y = Ceil(r.rows, kBlock);
  if (const int error = Launch(&GreatestOfSquares, shape, stream, r)) return error;
  return Round<kType, ScaleOf::kSquares>(r, stream);
}

}  // namespace

int RoundToFloat8(const Float8Rounding& rounding, StreamHandle stream) {
  return rounding.type == Float8::kE4M3 ? RoundTo<Float8::kE4M3>(rounding, stream)
                                        : RoundTo<Float8::kE5M2>(rounding, stream);
}

}  // namespace ft::cuda
