#include "runtime/backends/cuda/routines/dot.h"
#include "runtime/backends/cuda/routines/element.h"

namespace ft::cuda {
namespace {

constexpr int kDotSide = 16;  // threads of a block along either side of its tile
constexpr int kDotThreads = kDotSide * kDotSide;
constexpr int kDotEach = 4;  // rows, and columns, of a thread
constexpr int kDotTile = kDotSide * kDotEach;
constexpr int kDotDepth = 16;  // of the sums at a time

// A slab of one operand, zero outside it. One more column lets threads along either side meet no bank twice.
struct DotSlab {
  float at[kDotDepth][kDotTile + 1];
};

// Lines [first, first + kDotTile) of `lines`, places [begin, begin + kDotDepth) of the k that they have.
// Lines lie whole one after the other, or else their first places do.
template <typename T>
__device__ __forceinline__ void LoadSlab(DotSlab& slab, const T* from, int64_t first, int64_t lines,
                                         int64_t begin, int64_t k, bool whole) {
#pragma unroll
  for (int j = 0; j < kDotTile * kDotDepth / kDotThreads; ++j) {
    const int at = static_cast<int>(threadIdx.x) + j * kDotThreads;
    const int line = whole ? at / kDotDepth : at % kDotTile, place = whole ? at % kDotDepth : at / kDotTile;
    const int64_t row = first + line, column = begin + place;
    const bool is_inside = row < lines && column < k;
    slab.at[place][line] = is_inside ? ToFloat(from[whole ? row * k + column : column * lines + row]) : 0.0f;
  }
}

__device__ __forceinline__ void PutDot(void* r, DType output, int64_t i, float value) {
  if (output == DType::kBF16) {
    static_cast<BF16*>(r)[i] = FromFloat<BF16>(value);
  } else if (output == DType::kF16) {
    static_cast<F16*>(r)[i] = FromFloat<F16>(value);
  } else {
    static_cast<float*>(r)[i] = value;
  }
}

__device__ __forceinline__ void AddProducts(const DotSlab& a, const DotSlab& b, int row, int column,
                                            float (&sums)[kDotEach][kDotEach]) {
#pragma unroll 4
  for (int l = 0; l < kDotDepth; ++l) {
    float left[kDotEach], right[kDotEach];
#pragma unroll
    for (int i = 0; i < kDotEach; ++i) left[i] = a.at[l][row + i * kDotSide];
#pragma unroll
    for (int j = 0; j < kDotEach; ++j) right[j] = b.at[l][column + j * kDotSide];
#pragma unroll
    for (int i = 0; i < kDotEach; ++i) {
#pragma unroll
      for (int j = 0; j < kDotEach; ++j) sums[i][j] = fmaf(left[i], right[j], sums[i][j]);
    }
  }
}

// A block has a tile of one product's result; tiles of a product follow each other by rows.
template <typename T>
__global__ void __launch_bounds__(kDotThreads, 3) DotKernel(DotArgs args, DType output) {
  __shared__ DotSlab a_slab, b_slab;
  const int64_t across = (args.n + kDotTile - 1) / kDotTile, down = (args.m + kDotTile - 1) / kDotTile;
  const int64_t product = blockIdx.x / (across * down), tile = blockIdx.x - product * across * down;
  const int64_t first_row = tile / across * kDotTile, first_column = tile % across * kDotTile;
  const T* a = static_cast<const T*>(args.a) + product * args.m * args.k;
  const T* b = static_cast<const T*>(args.b) + product * args.k * args.n;
  const int row = static_cast<int>(threadIdx.x) / kDotSide, column = static_cast<int>(threadIdx.x) % kDotSide;
  float sums[kDotEach][kDotEach] = {};
  for (int64_t begin = 0; begin < args.k; begin += kDotDepth) {
    LoadSlab(a_slab, a, first_row, args.m, begin, args.k, !args.transpose_a);
    LoadSlab(b_slab, b, first_column, args.n, begin, args.k, args.transpose_b);
    __syncthreads();
    AddProducts(a_slab, b_slab, row, column, sums);
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kDotEach; ++i) {
#pragma unroll
    for (int j = 0; j < kDotEach; ++j) {
      const int64_t to_row = first_row + row + i * kDotSide, to_column = first_column + column + j * kDotSide;
      if (to_row < args.m && to_column < args.n)
        PutDot(args.r, output, (product * args.m + to_row) * args.n + to_column, sums[i][j]);
    }
  }
}

}  // namespace

int64_t DotBlocks(const DotArgs& args) {
  return args.batch * ((args.m + kDotTile - 1) / kDotTile) * ((args.n + kDotTile - 1) / kDotTile);
}

int Dot(const DotArgs& args, DType input, DType output, StreamHandle stream) {
  const int64_t blocks = DotBlocks(args);
  if (blocks == 0) return 0;
  return WithFloatType(input, [&]<typename T>() {
    return Launch(DotKernel<T>, {.grid_x = static_cast<unsigned>(blocks), .block_x = kDotThreads}, stream,
                  args, output);
  });
}

}  // namespace ft::cuda
