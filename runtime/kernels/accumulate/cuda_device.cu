#include "runtime/backends/cuda/device_code/gpu.h"
#include "runtime/backends/cuda/device_code/map.h"
#include "runtime/kernels/accumulate/cuda_device.h"

namespace ft::cuda {
namespace {

struct AccumulateOp {
  static constexpr int kInputs = 2, kOutputs = 1;
  __device__ __forceinline__ void operator()(const float (&in)[2], float (&out)[1]) const {
    out[0] = in[0] + in[1];
  }
};

struct AccumulatedOp {
  static constexpr int kInputs = 2, kOutputs = 2;
  __device__ __forceinline__ void operator()(const float (&in)[2], float (&out)[2]) const {
    out[0] = in[0] + in[1];
    out[1] = 0.0f;
  }
};

constexpr unsigned kIntegerThreads = 256;

// Counts, which are few. Without a result state has the sum.
__global__ void AddIntegers(AccumulateArgs args) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kIntegerThreads + threadIdx.x;
  if (i >= args.elements) return;
  auto* state = static_cast<int64_t*>(args.state);
  auto* result = static_cast<int64_t*>(args.result);
  const int64_t sum = state[i] + static_cast<const int64_t*>(args.x)[i];
  state[i] = result == nullptr ? sum : 0;
  if (result != nullptr) result[i] = sum;
}

int LaunchAddIntegers(const AccumulateArgs& args, StreamHandle stream) {
  LaunchShape shape;
  shape.grid_x = static_cast<unsigned>((args.elements + kIntegerThreads - 1) / kIntegerThreads);
  shape.block_x = kIntegerThreads;
  return Launch(&AddIntegers, shape, stream, args);
}

}  // namespace

int Accumulate(const AccumulateArgs& args, StreamHandle stream) {
  if (args.dtype == DType::kI64) return LaunchAddIntegers(args, stream);
  return WithFloatType(args.dtype, [&]<typename T>() {
    T* state = static_cast<T*>(args.state);
    return LaunchMap(
        MapArgs<AccumulateOp, T, T>{{state, static_cast<const T*>(args.x)}, {state}, args.elements, 0, {}},
        stream);
  });
}

int Accumulated(const AccumulateArgs& args, StreamHandle stream) {
  if (args.dtype == DType::kI64) return LaunchAddIntegers(args, stream);
  return WithFloatType(args.dtype, [&]<typename T>() {
    T* state = static_cast<T*>(args.state);
    return LaunchMap(MapArgs<AccumulatedOp, T, T>{{state, static_cast<const T*>(args.x)},
                                                  {static_cast<T*>(args.result), state},
                                                  args.elements,
                                                  0,
                                                  {}},
                     stream);
  });
}

}  // namespace ft::cuda
