#include "runtime/backends/cuda/routines/reductions.h"
#include "runtime/backends/cuda/routines/typed_elements.h"

namespace ft::cuda {
namespace {

struct LargerOf {
  template <typename Value>
  __device__ __forceinline__ Value operator()(Value a, Value b) const {
    return a != a || a > b ? a : b;
  }
};
struct SmallerOf {
  template <typename Value>
  __device__ __forceinline__ Value operator()(Value a, Value b) const {
    return a != a || a < b ? a : b;
  }
};

__device__ __forceinline__ int64_t OffsetOf(const Loops& loops, int64_t index) {
  int64_t offset = 0;
  for (int d = loops.rank - 1; d > 0; --d) {
    const int64_t next = index / loops.dims[d];
    offset += (index - next * loops.dims[d]) * loops.strides[d];
    index = next;
  }
  return offset + index * loops.strides[0];
}

constexpr int kMostReduceThreads = 1024;

// How a block divides its work: `columns` elements of the result, for each of which `slices` threads, a power
// of two, reduce every slices-th element of x.
struct ReduceShape {
  int columns;
  int slices;
  bool along;  // threads that follow each other have slices that do; else columns
};

template <typename T, typename Op>
__global__ void __launch_bounds__(kMostReduceThreads) ReduceKernel(ReduceArgs args, ReduceShape shape) {
  using Value = ValueOf<T>;
  __shared__ Value values[kMostReduceThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const int column = shape.along ? thread / shape.slices : thread % shape.columns;
  const int slice = shape.along ? thread % shape.slices : thread / shape.columns;
  const int64_t element = static_cast<int64_t>(blockIdx.x) * shape.columns + column;
  const bool is_inside = element < args.elements;
  Value value = 0;
  if (is_inside) {
    const T* x = static_cast<const T*>(args.x) + OffsetOf(args.kept, element);
    value = ToValue(x[OffsetOf(args.reduced, slice)]);
#pragma unroll 4
    for (int64_t i = slice + shape.slices; i < args.count; i += shape.slices)
      value = Op()(value, ToValue(x[OffsetOf(args.reduced, i)]));
  }
  if (shape.slices > 1) {
    values[thread] = value;
    const int step = shape.along ? 1 : shape.columns;
    for (int width = shape.slices / 2; width > 0; width /= 2) {
      __syncthreads();
      if (slice < width) values[thread] = Op()(values[thread], values[thread + width * step]);
    }
    value = values[thread];
  }
  if (is_inside && slice == 0) PutValue(args.r, args.result, element, value);
}

// A thread an element of the result where it reduces few, or warps read side by side even so; else a warp,
// and a block where there are many.
ReduceShape ShapeOf(const ReduceArgs& args) {
  constexpr int64_t kMany = 1024;
  const bool beside = args.kept.rank > 0 && args.kept.strides[args.kept.rank - 1] == 1;
  if (args.count >= kMany) {
    return beside && args.elements >= kWarp ? ReduceShape{kWarp, kMostReduceThreads / kWarp, false}
                                            : ReduceShape{1, kMostReduceThreads, true};
  }
  if (beside || args.count < kWarp) return {256, 1, false};
  return {8, kWarp, true};
}

template <typename T>
int LaunchReduce(const ReduceArgs& args, Reducer reducer, StreamHandle stream) {
  const ReduceShape shape = ShapeOf(args);
  const int64_t blocks = (args.elements + shape.columns - 1) / shape.columns;
  const auto kernel = reducer == Reducer::kSum   ? ReduceKernel<T, SumOf>
                      : reducer == Reducer::kMax ? ReduceKernel<T, LargerOf>
                                                 : ReduceKernel<T, SmallerOf>;
  return Launch(kernel,
                {.grid_x = static_cast<unsigned>(blocks),
                 .block_x = static_cast<unsigned>(shape.columns * shape.slices)},
                stream, args, shape);
}

}  // namespace

int Reduce(const ReduceArgs& args, Reducer reducer, DType dtype, StreamHandle stream) {
  if (args.elements == 0) return 0;
  return WithNumberType(dtype, [&]<typename T>() { return LaunchReduce<T>(args, reducer, stream); });
}

}  // namespace ft::cuda
