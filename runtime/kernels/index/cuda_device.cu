#include "runtime/backends/cuda/device_code/typed_elements.h"
#include "runtime/kernels/index/cuda_device.h"
#include "runtime/kernels/movement/cuda_device.h"

namespace ft::cuda {
namespace {

constexpr int kIndexThreads = 256;

__device__ __forceinline__ int64_t IndexOfThread() {
  return static_cast<int64_t>(blockIdx.x) * kIndexThreads + threadIdx.x;
}

// A thread for each element.
LaunchShape IndexShape(int64_t elements) {
  return {.grid_x = static_cast<unsigned>((elements + kIndexThreads - 1) / kIndexThreads),
          .block_x = kIndexThreads};
}

// Unit is as large as an element.
template <typename Unit>
__global__ void __launch_bounds__(kIndexThreads) GatherElementsKernel(ElementsArgs args) {
  const int64_t i = IndexOfThread();
  if (i >= args.rows * args.r_columns) return;
  const int32_t id = args.ids[i];
  const bool is_inside = id >= 0 && id < args.x_columns;
  const int64_t row = i / args.r_columns;
  static_cast<Unit*>(args.r)[i] =
      is_inside ? static_cast<const Unit*>(args.x)[row * args.x_columns + id] : Unit{};
}

// The thread whose id is the first of its kind in the row adds all of them. Each reads the ids of its row,
// which are few.
template <typename T>
__global__ void __launch_bounds__(kIndexThreads) ScatterAddElementsKernel(ElementsArgs args) {
  const int64_t i = IndexOfThread();
  if (i >= args.rows * args.x_columns) return;
  const int32_t id = args.ids[i];
  if (id < 0 || id >= args.r_columns) return;
  const int64_t row = i / args.x_columns, begin = row * args.x_columns, end = begin + args.x_columns;
  for (int64_t j = begin; j < i; ++j) {
    if (args.ids[j] == id) return;
  }
  double sum = 0;
  for (int64_t j = i; j < end; ++j) {
    if (args.ids[j] == id) sum += ToValue(static_cast<const T*>(args.x)[j]);
  }
  PutValue(args.r, args.result, row * args.r_columns + id, sum);
}

constexpr int kMostCumsumThreads = 1024;

// The sum of the values of the lanes up to and including this one.
template <typename Value>
__device__ __forceinline__ Value WarpCumsum(Value value, int lane) {
#pragma unroll
  for (int step = 1; step < kWarp; step *= 2) {
    const Value before = __shfl_up_sync(kAllLanes, value, step);
    if (lane >= step) value = SumOf()(before, value);
  }
  return value;
}

// A block goes along a row, an element of each thread at a time.
template <typename T>
__global__ void __launch_bounds__(kMostCumsumThreads) CumsumKernel(RowsArgs args) {
  using Value = ValueOf<T>;
  __shared__ Value totals[kWarp];  // of warps
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp, warp = thread / kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    Value before = 0;  // all that the block has been along
    for (int64_t tile = 0; tile < args.columns; tile += blockDim.x) {
      const int64_t i = tile + thread;
      const int64_t at = row * args.columns + (args.backwards ? args.columns - 1 - i : i);
      const bool is_inside = i < args.columns;
      Value sum = WarpCumsum(is_inside ? ToValue(static_cast<const T*>(args.x)[at]) : Value{0}, lane);
      if (lane == kWarp - 1) totals[warp] = sum;
      __syncthreads();
      const Value ends = WarpCumsum(lane < warps ? totals[lane] : Value{0}, lane);
      const Value warps_before = __shfl_sync(kAllLanes, ends, warp > 0 ? warp - 1 : 0);
      if (warp > 0) sum = SumOf()(warps_before, sum);
      if (is_inside) PutValue(args.r, args.result, at, SumOf()(before, sum));
      before = SumOf()(before, __shfl_sync(kAllLanes, ends, kWarp - 1));
      __syncthreads();  // totals may be written again
    }
  }
}

// What elements are compared as: floats of any type in f32, which holds them all.
template <typename T>
__device__ __forceinline__ auto KeyOf(T element) {
  if constexpr (std::is_integral_v<T>) {
    return element;
  } else {
    return ToFloat(element);
  }
}

// NaN is above everything.
template <typename Key>
__device__ __forceinline__ bool IsBelow(Key a, Key b) {
  return a < b || (a == a && b != b);
}

// A thread finds the place of an element by comparison with all others of its row, until it is behind those
// that are wanted.
template <typename T>
__global__ void __launch_bounds__(kIndexThreads) ArgsortKernel(RowsArgs args) {
  const int64_t element = IndexOfThread();
  if (element >= args.rows * args.columns) return;
  const int64_t row = element / args.columns, i = element - row * args.columns;
  const T* x = static_cast<const T*>(args.x) + row * args.columns;
  const auto own = KeyOf(x[i]);
  int64_t place = 0;
  for (int64_t j = 0; j < args.columns && place < args.r_columns; ++j) {
    const auto other = KeyOf(x[j]), low = args.backwards ? own : other, high = args.backwards ? other : own;
    place += static_cast<int64_t>(j < i ? !IsBelow(high, low) : IsBelow(low, high));
  }
  if (place < args.r_columns)
    static_cast<int32_t*>(args.r)[row * args.r_columns + place] = static_cast<int32_t>(i);
}

constexpr int kBlockCounts = 1024;  // that a block keeps by itself first, where there are no more
constexpr int kHistogramEach = 16;  // ids of a thread

__global__ void __launch_bounds__(kIndexThreads) HistogramKernel(HistogramArgs args) {
  __shared__ int32_t counts[kBlockCounts];
  const int thread = static_cast<int>(threadIdx.x);
  const bool by_block = args.counts <= kBlockCounts;
  if (by_block) {
    for (int i = thread; i < args.counts; i += kIndexThreads) counts[i] = 0;
    __syncthreads();
  }
  const int64_t tile = static_cast<int64_t>(blockIdx.x) * kIndexThreads * kHistogramEach;
  int32_t* to = by_block ? counts : args.r;
#pragma unroll
  for (int k = 0; k < kHistogramEach; ++k) {
    const int64_t i = tile + k * kIndexThreads + thread;
    const int32_t id = i < args.elements ? args.ids[i] : -1;
    if (id >= 0 && id < args.counts) atomicAdd(to + id, 1);
  }
  if (!by_block) return;
  __syncthreads();
  for (int i = thread; i < args.counts; i += kIndexThreads) {
    if (counts[i] > 0) atomicAdd(args.r + i, counts[i]);
  }
}

}  // namespace

int GatherElements(const ElementsArgs& args, int element_bytes, StreamHandle stream) {
  if (args.rows * args.r_columns == 0) return 0;
  const auto kernel = element_bytes == 1   ? GatherElementsKernel<uint8_t>
                      : element_bytes == 2 ? GatherElementsKernel<uint16_t>
                      : element_bytes == 4 ? GatherElementsKernel<uint32_t>
                                           : GatherElementsKernel<uint64_t>;
  return Launch(kernel, IndexShape(args.rows * args.r_columns), stream, args);
}

int ScatterAddElements(const ElementsArgs& args, DType dtype, StreamHandle stream) {
  const int64_t bytes = args.rows * args.r_columns * static_cast<int64_t>(SizeOf(args.result));
  if (const int error = FillZeros(args.r, bytes, stream); error != 0) return error;
  const int64_t elements = args.rows * args.x_columns;
  if (elements == 0) return 0;
  return WithFloatType(dtype, [&]<typename T>() {
    return Launch(ScatterAddElementsKernel<T>, IndexShape(elements), stream, args);
  });
}

int Cumsum(const RowsArgs& args, DType dtype, StreamHandle stream) {
  if (args.rows == 0 || args.columns == 0) return 0;
  const int64_t warps = (args.columns + kWarp - 1) / kWarp;
  const int64_t threads = warps * kWarp < kMostCumsumThreads ? warps * kWarp : kMostCumsumThreads;
  const LaunchShape shape = {.grid_x = static_cast<unsigned>(args.rows < INT32_MAX ? args.rows : INT32_MAX),
                             .block_x = static_cast<unsigned>(threads)};
  return WithNumberType(dtype, [&]<typename T>() { return Launch(CumsumKernel<T>, shape, stream, args); });
}

int Argsort(const RowsArgs& args, DType dtype, StreamHandle stream) {
  const int64_t elements = args.rows * args.columns;
  if (elements == 0) return 0;
  return WithNumberType(
      dtype, [&]<typename T>() { return Launch(ArgsortKernel<T>, IndexShape(elements), stream, args); });
}

int Histogram(const HistogramArgs& args, StreamHandle stream) {
  if (const int error = FillZeros(args.r, args.counts * 4, stream); error != 0) return error;
  if (args.elements == 0) return 0;
  return Launch(HistogramKernel, IndexShape((args.elements + kHistogramEach - 1) / kHistogramEach), stream,
                args);
}

}  // namespace ft::cuda
