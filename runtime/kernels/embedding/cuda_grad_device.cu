#include <cstddef>

#include "runtime/backends/cuda/device_code/gpu.h"
#include "runtime/backends/cuda/device_code/store.h"
#include "runtime/base/cuda_workspace.h"
#include "runtime/kernels/embedding/cuda_device.h"
#include "runtime/kernels/embedding/cuda_sort_positions.h"

namespace ft::cuda {
namespace {

constexpr int kScatterThreads = 256;
constexpr int kScatterWarps = kScatterThreads / kWarp;
constexpr int kScatterAhead = 4;  // rows that a warp reads at a time

// What the sums need besides the arguments.
struct Sorted {
  EmbeddingGradArgs args;
  const uint64_t* entries;  // id << 32 | position, sorted
  float* partials;  // [slices, 2, columns]: of the id that a slice begins within; of the one it ends within
  int positions;
  int slice;  // entries of a slice
  int slices;
};

__device__ __forceinline__ uint32_t IdOf(uint64_t entry) { return static_cast<uint32_t>(entry >> 32); }

// Ends the sum of an id whose entries are [first, end) of slice [slice_begin, slice_end): into the table when
// these are all of them, else into a partial sum.
template <int kWidth>
__device__ __forceinline__ void EndRun(const Sorted& s, int slice, int slice_begin, int slice_end, int first,
                                       int end, uint32_t id, int64_t column, const float (&sum)[kWidth]) {
  const bool begins = first > slice_begin || first == 0 || IdOf(s.entries[first - 1]) != id;
  const bool ends = end < slice_end || end == s.positions || IdOf(s.entries[end]) != id;
  if (column >= s.args.columns) return;
  if (begins && ends) {
    StoreRunAs(s.args.dtable, s.args.table_dtype, id * s.args.columns + column, sum, s.args.add);
    return;
  }
  StoreRun(s.partials + (int64_t{2} * slice + (begins ? 1 : 0)) * s.args.columns + column, sum, false);
}

// A warp adds the rows of one slice, in order, in columns 32 * kWidth * blockIdx.y ...
template <typename T, int kWidth>
__global__ __launch_bounds__(kScatterThreads) void SumSlices(Sorted s) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int slice = static_cast<int>(blockIdx.x) * kScatterWarps + static_cast<int>(threadIdx.x) / kWarp;
  if (slice >= s.slices) return;
  const int begin = slice * s.slice;
  const int end = s.positions - begin < s.slice ? s.positions : begin + s.slice;
  const int64_t column = (static_cast<int64_t>(blockIdx.y) * kWarp + lane) * kWidth;
  const T* dy = static_cast<const T*>(s.args.dy) + (column < s.args.columns ? column : 0);
  float sum[kWidth] = {};
  uint32_t current = IdOf(s.entries[begin]);
  int first = begin;
  for (int batch = begin; batch < end && current < s.args.vocabulary; batch += kWarp) {
    // The lanes read one entry each and hand them round.
    const uint64_t own = s.entries[batch + lane < end ? batch + lane : end - 1];
    const int count = end - batch < kWarp ? end - batch : kWarp;
    for (int i = 0; i < count; i += kScatterAhead) {
      Pack<T, kWidth> rows[kScatterAhead];
#pragma unroll
      for (int k = 0; k < kScatterAhead; ++k) {
        const uint64_t entry = __shfl_sync(kAllLanes, own, i + k);  // behind the end: the last one again
        rows[k] =
            LoadSome<T, kWidth>(dy + static_cast<int64_t>(static_cast<uint32_t>(entry)) * s.args.columns);
      }
#pragma unroll
      for (int k = 0; k < kScatterAhead; ++k) {
        const uint32_t id = IdOf(__shfl_sync(kAllLanes, own, i + k));
        if (i + k >= count) continue;
        if (id != current) {
          if (current < s.args.vocabulary) {
            EndRun(s, slice, begin, end, first, batch + i + k, current, column, sum);
          }
          current = id;
          first = batch + i + k;
#pragma unroll
          for (int j = 0; j < kWidth; ++j) sum[j] = 0.0f;
        }
#pragma unroll
        for (int j = 0; j < kWidth; ++j) sum[j] += ToFloat(rows[k].at[j]);
      }
    }
  }
  if (current < s.args.vocabulary) EndRun(s, slice, begin, end, first, end, current, column, sum);
}

// A warp adds the partial sums of the id that one slice ends within, if the id begins there, for 32 columns.
__global__ __launch_bounds__(kScatterThreads) void AddSlices(Sorted s) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int slice = static_cast<int>(blockIdx.x) * kScatterWarps + static_cast<int>(threadIdx.x) / kWarp;
  if (slice + 1 >= s.slices) return;
  const int begin = slice * s.slice, next = begin + s.slice;
  const uint32_t id = IdOf(s.entries[next - 1]);
  if (id >= s.args.vocabulary || IdOf(s.entries[next]) != id) return;
  if (begin > 0 && IdOf(s.entries[begin - 1]) == id) return;  // an earlier slice's
  const int64_t column = static_cast<int64_t>(blockIdx.y) * kWarp + lane;
  const bool inside = column < s.args.columns;
  const float* partials = s.partials + (inside ? column : 0);
  float sum = partials[(int64_t{2} * slice + 1) * s.args.columns];
  for (int batch = slice + 1; batch < s.slices; batch += kWarp) {
    // The id goes on through the slices that begin with it.
    const int own = batch + lane;
    const bool goes_on = own < s.slices && IdOf(s.entries[own * s.slice]) == id;
    const int count = __popc(__ballot_sync(kAllLanes, goes_on));
#pragma unroll 8
    for (int i = 0; i < count; ++i) sum += partials[int64_t{2} * (batch + i) * s.args.columns];
    if (count < kWarp) break;
  }
  const float sums[1] = {sum};
  if (inside) StoreRunAs(s.args.dtable, s.args.table_dtype, id * s.args.columns + column, sums, s.args.add);
}

struct ZeroArgs {
  void* data;
  int64_t packs;   // of 16 bytes
  int64_t halves;  // of 16 bits, all of them
};

constexpr int kZeroPacks = 4;  // written by a thread

__global__ __launch_bounds__(kScatterThreads) void Zero(ZeroArgs args) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kScatterThreads * kZeroPacks + threadIdx.x;
#pragma unroll
  for (int k = 0; k < kZeroPacks; ++k) {
    const int64_t i = first + k * kScatterThreads;
    if (i < args.packs) StorePack(static_cast<float*>(args.data) + i * 4, Pack<float>{});
  }
  if (blockIdx.x != 0) return;
  for (int64_t i = args.packs * 8 + threadIdx.x; i < args.halves; i += kScatterThreads) {
    static_cast<uint16_t*>(args.data)[i] = 0;
  }
}

int ClearTable(const EmbeddingGradArgs& args, StreamHandle stream) {
  constexpr int64_t kPerBlock = kScatterThreads * kZeroPacks;
  const int64_t halves = args.vocabulary * args.columns * static_cast<int64_t>(SizeOf(args.table_dtype)) / 2;
  const ZeroArgs zero = {args.dtable, CanPack<float>(args.dtable, 0) ? halves / 8 : 0, halves};
  LaunchShape shape;
  shape.grid_x = static_cast<unsigned>(zero.packs / kPerBlock + 1);
  shape.block_x = kScatterThreads;
  return Launch(&Zero, shape, stream, zero);
}

template <typename T, int kWidth>
int LaunchSumSlices(const Sorted& sorted, StreamHandle stream) {
  constexpr int64_t kColumns = kWarp * kWidth;
  LaunchShape shape;
  shape.grid_x = static_cast<unsigned>((sorted.slices + kScatterWarps - 1) / kScatterWarps);
  shape.grid_y = static_cast<unsigned>((sorted.args.columns + kColumns - 1) / kColumns);
  shape.block_x = kScatterThreads;
  return Launch(&SumSlices<T, kWidth>, shape, stream, sorted);
}

}  // namespace

int EmbeddingGrad(const EmbeddingGradArgs& args, StreamHandle stream) {
  if (!args.add) {
    if (const int error = ClearTable(args, stream); error != 0) return error;
  }
  if (args.rows == 0) return 0;
  std::byte* workspace = static_cast<std::byte*>(args.workspace);
  const int64_t entries = cuda_workspace::Aligned(args.rows * 8);
  const int64_t counters =
      cuda_workspace::Aligned(cuda_workspace::kSortDigits * cuda_workspace::SortTiles(args.rows) * 4);
  SortPositionsArgs sort = {
      args.ids,
      args.rows,
      args.vocabulary,
      {reinterpret_cast<uint64_t*>(workspace), reinterpret_cast<uint64_t*>(workspace + entries)},
      reinterpret_cast<uint32_t*>(workspace + 2 * entries)};
  if (const int error = SortPositions(sort, stream); error != 0) return error;
  const Sorted sorted = {args,
                         sort.entries[SortedBuffer(sort)],
                         reinterpret_cast<float*>(workspace + 2 * entries + counters),
                         static_cast<int>(args.rows),
                         static_cast<int>(cuda_workspace::EmbeddingSlice(args.rows)),
                         static_cast<int>(cuda_workspace::EmbeddingSlices(args.rows))};
  const int error = WithFloatType(args.dtype, [&]<typename T>() {
    return CanPack<uint16_t>(args.dy, args.columns) && CanPack<uint16_t>(args.dtable, args.columns)
               ? LaunchSumSlices<T, 16 / sizeof(T)>(sorted, stream)
               : LaunchSumSlices<T, 1>(sorted, stream);
  });
  if (error != 0 || sorted.slices == 1) return error;
  LaunchShape shape;
  shape.grid_x = static_cast<unsigned>((sorted.slices + kScatterWarps - 1) / kScatterWarps);
  shape.grid_y = static_cast<unsigned>((args.columns + kWarp - 1) / kWarp);
  shape.block_x = kScatterThreads;
  return Launch(&AddSlices, shape, stream, sorted);
}

}  // namespace ft::cuda
