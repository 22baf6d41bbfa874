#include "runtime/backends/cuda/device_code/store.h"
#include "runtime/kernels/dot/cuda_device.h"

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
__device__ __forceinline__ void LoadSlab(DotSlab& slab, const T* from, uint32_t first, uint32_t lines,
                                         uint32_t begin, uint32_t k, bool whole) {
#pragma unroll
  for (int j = 0; j < kDotTile * kDotDepth / kDotThreads; ++j) {
    const uint32_t at = threadIdx.x + j * kDotThreads;
    const uint32_t line = whole ? at / kDotDepth : at % kDotTile;
    const uint32_t place = whole ? at % kDotDepth : at / kDotTile;
    const uint32_t row = first + line, column = begin + place;
    const bool is_inside = row < lines && column < k;
    const uint64_t i = whole ? uint64_t{row} * k + column : uint64_t{column} * lines + row;
    slab.at[place][line] = is_inside ? ToFloat(from[i]) : 0.0f;
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

// One product of matrices as in DotArgs.
template <typename T>
struct DotMatrices {
  const T* a;
  const T* b;
  uint32_t m, n, k;
  bool transpose_a, transpose_b;
  bool accumulate = false;
};

// Sums are in f32, and rounded once.
__device__ __forceinline__ void PutDot(void* r, DType output, int64_t at, float sum, bool accumulate) {
  StoreAs(r, output, at, accumulate ? LoadAs(r, output, at) + sum : sum);
}

// A block's tile of a product, whose result begins at element `to` of r. Tiles follow each other by rows.
template <typename T>
__device__ __forceinline__ void DotOfTile(const DotMatrices<T>& of, uint32_t tile, void* r, int64_t to,
                                          DType output) {
  __shared__ DotSlab a_slab, b_slab;
  const uint32_t across = (of.n + kDotTile - 1) / kDotTile;
  const uint32_t first_row = tile / across * kDotTile, first_column = tile % across * kDotTile;
  const int row = static_cast<int>(threadIdx.x) / kDotSide, column = static_cast<int>(threadIdx.x) % kDotSide;
  float sums[kDotEach][kDotEach] = {};
  for (uint32_t begin = 0; begin < of.k; begin += kDotDepth) {
    LoadSlab(a_slab, of.a, first_row, of.m, begin, of.k, !of.transpose_a);
    LoadSlab(b_slab, of.b, first_column, of.n, begin, of.k, of.transpose_b);
    __syncthreads();
    AddProducts(a_slab, b_slab, row, column, sums);
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kDotEach; ++i) {
#pragma unroll
    for (int j = 0; j < kDotEach; ++j) {
      const uint32_t to_row = first_row + row + i * kDotSide,
                     to_column = first_column + column + j * kDotSide;
      if (to_row < of.m && to_column < of.n)
        PutDot(r, output, to + int64_t{to_row} * of.n + to_column, sums[i][j], of.accumulate);
    }
  }
}

__host__ __device__ __forceinline__ int64_t DotTiles(int64_t m, int64_t n) {
  return ((m + kDotTile - 1) / kDotTile) * ((n + kDotTile - 1) / kDotTile);
}

// Tiles of a product follow each other.
template <typename T>
__global__ void __launch_bounds__(kDotThreads, 3) DotKernel(DotArgs args, DType output) {
  const int64_t tiles = DotTiles(args.m, args.n), product = blockIdx.x / tiles;
  const DotMatrices<T> of = {.a = static_cast<const T*>(args.a) + product * args.m * args.k,
                             .b = static_cast<const T*>(args.b) + product * args.k * args.n,
                             .m = static_cast<uint32_t>(args.m),
                             .n = static_cast<uint32_t>(args.n),
                             .k = static_cast<uint32_t>(args.k),
                             .transpose_a = args.transpose_a,
                             .transpose_b = args.transpose_b};
  DotOfTile(of, static_cast<uint32_t>(blockIdx.x - product * tiles), args.r, product * args.m * args.n,
            output);
}

// The end of a group of rows that begins where the one before ends. That behind the last group ends with the
// rows.
__device__ __forceinline__ int64_t EndOfGroup(const GroupedDotArgs& args, int64_t begin, int64_t group) {
  const int64_t end = group < args.groups ? args.ends[group] : args.rows;
  return end < begin ? begin : end < args.rows ? end : args.rows;
}

// Blocks have the tiles of all groups, and those of the rows behind, whose sums are of nothing. There may be
// more blocks than tiles: the host does not know where groups end.
template <typename T>
__global__ void __launch_bounds__(kDotThreads, 3) GroupedDotKernel(GroupedDotArgs args, DType output) {
  int64_t tile = blockIdx.x, group = 0, begin = 0, end = EndOfGroup(args, 0, 0);
  while (tile >= DotTiles(end - begin, args.n)) {
    if (group == args.groups) return;
    tile -= DotTiles(end - begin, args.n);
    begin = end;
    end = EndOfGroup(args, begin, ++group);
  }
  const DotMatrices<T> of = {.a = static_cast<const T*>(args.a) + begin * args.k,
                             .b = static_cast<const T*>(args.b) + group * args.k * args.n,
                             .m = static_cast<uint32_t>(end - begin),
                             .n = static_cast<uint32_t>(args.n),
                             .k = static_cast<uint32_t>(group < args.groups ? args.k : 0),
                             .transpose_a = false,
                             .transpose_b = args.transpose_b};
  DotOfTile(of, static_cast<uint32_t>(tile), args.r, begin * args.n, output);
}

template <typename T>
__global__ void __launch_bounds__(kDotThreads, 3) GroupedDotGradKernel(GroupedDotArgs args, DType output) {
  const int64_t tiles = DotTiles(args.k, args.n), group = blockIdx.x / tiles;
  int64_t begin = 0, end = EndOfGroup(args, 0, 0);
  for (int64_t g = 1; g <= group; ++g) {
    begin = end;
    end = EndOfGroup(args, begin, g);
  }
  const DotMatrices<T> of = {.a = static_cast<const T*>(args.a) + begin * args.k,
                             .b = static_cast<const T*>(args.b) + begin * args.n,
                             .m = static_cast<uint32_t>(args.k),
                             .n = static_cast<uint32_t>(args.n),
                             .k = static_cast<uint32_t>(end - begin),
                             .transpose_a = true,
                             .transpose_b = false,
                             .accumulate = args.accumulate};
  DotOfTile(of, static_cast<uint32_t>(blockIdx.x - group * tiles), args.r, group * args.k * args.n, output);
}

template <typename Args>
int LaunchDot(void (*kernel)(Args, DType), int64_t blocks, const Args& args, DType output,
              StreamHandle stream) {
  if (blocks == 0) return 0;
  return Launch(kernel, {.grid_x = static_cast<unsigned>(blocks), .block_x = kDotThreads}, stream, args,
                output);
}

}  // namespace

int64_t DotBlocks(const DotArgs& args) { return args.batch * DotTiles(args.m, args.n); }

int Dot(const DotArgs& args, DType input, DType output, StreamHandle stream) {
  return WithFloatType(
      input, [&]<typename T>() { return LaunchDot(DotKernel<T>, DotBlocks(args), args, output, stream); });
}

// Each group, and the rows behind, may have one tile down that is not full.
int64_t GroupedDotBlocks(const GroupedDotArgs& args) {
  return DotTiles(args.rows + args.groups * (kDotTile - 1), args.n);
}

int GroupedDot(const GroupedDotArgs& args, DType input, DType output, StreamHandle stream) {
  return WithFloatType(input, [&]<typename T>() {
    return LaunchDot(GroupedDotKernel<T>, GroupedDotBlocks(args), args, output, stream);
  });
}

int64_t GroupedDotGradBlocks(const GroupedDotArgs& args) { return args.groups * DotTiles(args.k, args.n); }

int GroupedDotGrad(const GroupedDotArgs& args, DType input, DType output, StreamHandle stream) {
  return WithFloatType(input, [&]<typename T>() {
    return LaunchDot(GroupedDotGradKernel<T>, GroupedDotGradBlocks(args), args, output, stream);
  });
}

}  // namespace ft::cuda
